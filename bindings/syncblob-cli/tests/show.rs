//! Tests `syncblob show`.

mod program;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use program::{command, real_files, run, Files};
use syncblob::{Blob, Part};

fn show(options: &[&str], file: &Path) -> (i32, String, String) {
    run(command("show", options, &[file]))
}

/// Returns the width, the height and the pixels (red, green, blue).
fn decoded(path: &Path) -> (usize, usize, Vec<[u8; 3]>) {
    let mut reader =
        png::Decoder::new(BufReader::new(File::open(path).unwrap())).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
    let pixels = bytes.chunks(3).map(|pixel| pixel.try_into().unwrap()).collect();
    (info.width as usize, info.height as usize, pixels)
}

#[test]
fn a_mean_file_is_drawn_unchanged() {
    let Some(mean) =
        real_files().into_iter().find(|file| file.extension().unwrap() == "binaryproto")
    else {
        return;
    };
    let files = Files::new();
    let blob = Blob::<f32>::read_file(&mean).unwrap();
    let [_, channels, height, width] = blob.legacy_shape().unwrap();
    assert_eq!(channels, 3);
    for (options, order) in
        [(&["--scale", "2"][..], [2, 1, 0]), (&["--scale=2", "--rgb"], [0, 1, 2])]
    {
        let output = files.path(&format!("mean{}.png", order[0]));
        let options = [options, &["-o", output.to_str().unwrap()]].concat();
        assert_eq!(show(&options, &mean), (0, String::new(), String::new()));
        let (w, h, pixels) = decoded(&output);
        assert_eq!((w, h), (2 * width, 2 * height));
        for (index, pixel) in pixels.iter().enumerate() {
            let (x, y) = (index % w / 2, index / w / 2);
            let value = |channel| blob.at(Part::Data, [0, channel, y, x]).unwrap().round() as u8;
            assert_eq!(*pixel, order.map(value), "{x}, {y}");
        }
    }
}

#[test]
fn filters_of_the_first_convolution_are_drawn_as_a_grid() {
    let files = Files::new();
    let net = files.net(
        "net",
        &[
            ("data", "Input", &[4], &[0.0_f32; 4]),
            (
                "conv1",
                "Convolution",
                &[4, 1, 2, 2],
                &[0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0],
            ),
            ("conv2", "Convolution", &[1, 1, 1, 2], &[-5.0, 6.0]),
        ],
    );
    let output = files.path("grid.png");
    let to = ["-o", output.to_str().unwrap(), "--scale", "1"];
    assert_eq!(show(&to, &net), (0, String::new(), String::new()));
    let (width, height, pixels) = decoded(&output);
    assert_eq!((width, height), (5, 5));
    let rows: Vec<Vec<u8>> =
        pixels.chunks(5).map(|row| row.iter().map(|pixel| pixel[0]).collect()).collect();
    let wanted = [
        [0, 85, 255, 0, 0],
        [170, 255, 255, 0, 0],
        [255; 5],
        [85, 85, 255, 255, 255],
        [85, 85, 255, 255, 255],
    ];
    assert_eq!(rows, wanted);

    let of_layer = [&to[..], &["--force", "--layer", "conv2"]].concat();
    assert_eq!(show(&of_layer, &net).0, 0);
    assert_eq!(decoded(&output), (2, 1, vec![[0; 3], [255; 3]]));
}

#[test]
fn histograms_are_printed_without_an_output() {
    let files = Files::new();
    let values: Vec<f32> = (0..64).map(|n| n as f32).collect();
    let net = files.net(
        "net",
        &[("ip", "InnerProduct", &[8, 8], &values[..]), ("bias", "Bias", &[2], &[f32::NAN, 2.0])],
    );
    let (status, out, err) = show(&[], &net);
    assert_eq!((status, err.as_str()), (0, ""));
    for part in [
        "ip.0 (InnerProduct): 8x8, 64 values",
        &"█".repeat(32),
        "mean 31.50000",
        "largest: 63.00000 at [7, 7]",
        "1 not finite",
    ] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    let (_, out, _) = show(&["--layer", "ip"], &net);
    assert!(!out.contains("bias"), "{out}");
    assert_eq!(out.lines().filter(|line| line.ends_with(" 2") && line.contains('█')).count(), 32);
    assert_eq!(show(&["--layer", "ip.0"], &net).1, out);
}

#[test]
fn every_real_file_is_shown() {
    for file in real_files() {
        let (status, out, err) = show(&[], &file);
        assert_eq!((status, err.as_str()), (0, ""));
        assert!(out.contains("largest: "), "{out}");
    }
}

#[test]
fn an_existing_file_needs_force_and_survives_a_failure() {
    let files = Files::new();
    let (mean, short) = (files.mean("mean", &[1, 2, 2], &[0.0, 1.0, 2.0, 3.0]), files.short());
    let old = files.write("old.png", b"old");
    let to = ["-o", old.to_str().unwrap()];
    let (status, _, err) = show(&to, &mean);
    assert_eq!((status, fs::read(&old).unwrap()), (1, b"old".to_vec()));
    assert!(err.contains("--force"), "{err}");
    assert_eq!(show(&[&to[..], &["--force"]].concat(), &short).0, 1);
    assert_eq!(fs::read(&old).unwrap(), b"old");
    assert_eq!(show(&[&to[..], &["--force"]].concat(), &mean).0, 0);
    assert_eq!(decoded(&old).0, 512);
}

#[test]
fn a_refusal_contains_advice() {
    let files = Files::new();
    let net = files.net("net", &[("ip", "InnerProduct", &[2, 2], &[0.0_f32; 4])]);
    let output = files.path("out.png");
    let to = ["-o", output.to_str().unwrap()];
    let nowhere = ["-o", "/nowhere/at/all.png"];
    let mean = files.mean("mean", &[1, 2, 2], &[0.0; 4]);
    let cases: [(&[&str], &Path, i32, &str); 6] = [
        (&to, &net, 1, "without --output"),
        (&["--layer", "conv"], &net, 1, "syncblob info"),
        (&[], &files.path("missing"), 1, "check the path"),
        (&nowhere, &mean, 1, "there is no folder \"/nowhere/at\""),
        (&["--force"], &mean, 2, "--output"),
        (&["--scale", "0", "-o", "x"], &mean, 2, "--scale"),
    ];
    for (options, file, wanted, part) in cases {
        let (status, _, err) = show(options, file);
        assert_eq!(status, wanted, "{err}");
        assert!(err.contains(part), "{part} is not in {err}");
    }
    assert!(!output.exists());
}
