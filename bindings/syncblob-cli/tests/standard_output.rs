//! Tests that the exit status reports a failure to print the output.
#![cfg(unix)]

mod program;

use program::{unheard, unopened, Files};

#[test]
fn every_command_reports_output_that_cannot_be_printed() {
    let files = Files::new();
    let net = files.net("net.caffemodel", &[("conv", "Convolution", &[2], &[0.5_f32, 1.0])]);
    let carrying = files.carrying_net("carrying.caffemodel", 3, 2);
    let (carrying, onnx) = (carrying.to_str().unwrap(), files.path("out.onnx"));
    let (net, out) = (net.to_str().unwrap(), files.path("out.npz"));
    let out = out.to_str().unwrap();
    let onnx = onnx.to_str().unwrap();
    let rows: [(i32, &[&str]); 21] = [
        (1, &["info", net]),
        (1, &["info", "--json", net]),
        (1, &["convert", "--dry-run", net, out]),
        (1, &["convert", "--dry-run", carrying, onnx]),
        (1, &["prototxt", carrying]),
        (2, &["diff", net, net]),
        (2, &["diff", "--json", net, net]),
        (1, &["show", net]),
        (1, &["show", "--layer", "conv", net]),
        (2, &["verify", net]),
        (2, &["verify", "--json", net, "/nowhere"]),
        (1, &["completions", "bash"]),
        (1, &["completions", "zsh"]),
        (1, &["man"]),
        (1, &["man", "diff"]),
        (1, &["--version"]),
        (1, &["--help"]),
        (1, &["-h"]),
        (1, &["help"]),
        (1, &["help", "info"]),
        (1, &["info", "--help"]),
    ];
    for (wanted, arguments) in rows {
        let [full, broken] = unheard(arguments);
        assert_eq!(broken, (wanted, String::new()), "{arguments:?}");
        let [closed, reading] = unopened(arguments);
        for (status, err) in [full, closed, reading] {
            assert_eq!(status, wanted, "{arguments:?}: {err}");
            assert!(err.starts_with("syncblob: standard output: "), "{arguments:?}: {err}");
            assert_eq!(err.lines().count(), 1, "{arguments:?}: {err}");
        }
    }
}

#[test]
fn a_command_that_prints_nothing_needs_no_standard_output() {
    let files = Files::new();
    let net = files.net("net.caffemodel", &[("conv", "Convolution", &[1, 2, 2], &[0.5_f32; 4])]);
    let net = net.to_str().unwrap();
    let carrying = files.carrying_net("carrying.caffemodel", 3, 2);
    let outs = ["a.npz", "b.html", "c.png", "d.onnx"].map(|name| files.path(name));
    let [npz, html, png, onnx] = outs.each_ref().map(|out| out.to_str().unwrap());
    for arguments in [
        &["convert", "-f", net, npz][..],
        &["convert", "-f", carrying.to_str().unwrap(), onnx],
        &["report", "-f", net, "-o", html],
        &["show", "-f", net, "-o", png],
    ] {
        for found in unopened(arguments) {
            assert_eq!(found, (0, String::new()), "{arguments:?}");
        }
    }
    assert!(outs.iter().all(|out| out.metadata().unwrap().len() > 0));
}
