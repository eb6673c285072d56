//! Tests `syncblob devices`.

mod program;

use std::path::Path;
use std::process::Command;

use program::{command, json_lines, make_library, run, Files};
use serde_json::{json, Value};

fn devices(options: &[&str], libraries: &[&Path]) -> (i32, String, String) {
    let words = libraries.iter().flat_map(|library| [Path::new("--backend"), library]);
    run(command("devices", options, &words.collect::<Vec<_>>()))
}

fn find<'a>(devices: &'a [Value], name: &str) -> &'a Value {
    devices.iter().find(|device| device["device"] == name).expect("the device is listed")
}

#[test]
fn built_in_devices_are_listed() {
    let (status, out, err) = devices(&[], &[]);
    assert_eq!((status, err.as_str()), (0, ""));
    let rows: Vec<Vec<_>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["device", "backend", "arithmetic", "memory", "streams"]);
    assert_eq!(rows[1], ["cpu", "built", "in", "f32,", "f64", "host", "no"]);
    assert_eq!(rows[2], ["sim:0", "built", "in", "f32,", "f64", "separate", "yes"]);
    assert_eq!(rows[3][0], "cuda:0");
}

#[test]
fn json_has_every_key_of_the_schema() {
    let (status, out, err) = devices(&["--json"], &[]);
    assert_eq!((status, err.as_str()), (0, ""));
    let devices = json_lines(&out);
    let schema: Value =
        serde_json::from_str(include_str!("../schema/devices-v1.schema.json")).unwrap();
    for device in &devices {
        let device = device.as_object().unwrap();
        let mut required: Vec<_> = schema["required"].as_array().unwrap().iter().collect();
        required.sort_by_key(|key| key.as_str());
        assert!(device.keys().eq(required), "{device:?}");
        let has_reason = device["status"].is_string() && device["message"].is_string();
        assert_eq!(device["opened"] == false, has_reason, "{device:?}");
    }
    let sim = json!({
        "schema": 1, "device": "sim:0", "library": null, "opened": true,
        "arithmetic": ["f32", "f64"], "shared_memory": false, "streams": true,
        "status": null, "message": null,
    });
    assert_eq!(*find(&devices, "sim:0"), sim);
    let cuda = find(&devices, "cuda:0");
    assert!(cuda["opened"] == true || cuda["status"] == "SB_ERR_NO_DEVICE", "{cuda}");
}

#[test]
fn devices_of_a_library_are_listed() {
    let sources = ["-std=c17", "-Ic/include", "bindings/syncblob-tests/src/backend.c"];
    let library = match make_library("backend", &sources) {
        Ok(library) => library,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let files = Files::new();
    let source = files.write("empty.c", b"int nothing;\n");
    let empty = make_library("empty", &[source]).expect("the source compiles");
    let (status, out, err) = devices(&["--json"], &[&empty, &library]);
    assert_eq!(status, 1, "empty.so has no backend");
    let lines: Vec<_> = err.lines().collect();
    assert!(lines[0].starts_with("syncblob: SB_ERR_NOT_FOUND: \""), "{err}");
    assert!(lines[0].ends_with("empty.so\" does not export syncblob_backend"), "{err}");
    assert_eq!(lines[0].matches("empty.so").count(), 1, "{err}");
    let note = "syncblob: note: only the first 32 devices of \"loaded\" are listed";
    assert_eq!(lines[1..], [note]);
    let devices = json_lines(&out);
    let last = find(&devices, "loaded:31");
    assert_eq!(last["library"], library.to_str().unwrap());
    assert_eq!((&last["opened"], &last["arithmetic"]), (&true.into(), &json!([])));
    assert_eq!(last["status"], "SB_ERR_UNSUPPORTED");
    assert_eq!(devices.last(), Some(last));
}

#[test]
fn opencl_devices_are_listed() {
    let headers = ["-std=c17", "-Ic/include", "-Ic/opencl/include", "-include", "CL/cl.h"];
    let empty = [&headers[..], &["-DCL_TARGET_OPENCL_VERSION=200", "-xc", "/dev/null", "-lOpenCL"]];
    if let Err(why) = make_library("no-opencl", &empty.concat()) {
        return eprintln!("skipped: OpenCL is not installed: {why}");
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../c/opencl/src");
    let sources = sources.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut arguments: Vec<_> =
        ["-std=c17", "-Ic/include", "-Ic/opencl/include"].map(Into::into).into();
    arguments.extend(sources.filter(|path| path.extension().is_some_and(|ending| ending == "c")));
    arguments.push(concat!("-L", env!("SYNCBLOB_ROOT"), "/lib").into());
    arguments.extend(["-lsyncblob", "-lOpenCL", "-lm", "-Wl,--exclude-libs,ALL"].map(Into::into));
    let library = make_library("opencl", &arguments).expect("the sources compile");
    let mut program = Command::new(env!("CARGO_BIN_EXE_syncblob"));
    program.env("ASAN_OPTIONS", "detect_leaks=0"); // LeakSanitizer crashes after a use of pocl
    let output = program.args(["devices", "--json", "--backend"]).arg(library).output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    let devices = json_lines(std::str::from_utf8(&output.stdout).unwrap());
    let device = find(&devices, "opencl:0");
    if device["status"] == "SB_ERR_NO_DEVICE" {
        return eprintln!("skipped: {}", device["message"]);
    }
    assert_eq!((&device["opened"], &device["streams"]), (&true.into(), &true.into()), "{device}");
    assert_eq!(device["arithmetic"][0], "f32", "{device}");
}
