//! Tests `syncblob completions` and `syncblob man`.

mod program;

use std::process::{Command, Stdio};

use program::{run, Files};

const COMMANDS: [&str; 10] = [
    "info",
    "convert",
    "diff",
    "show",
    "report",
    "verify",
    "prototxt",
    "devices",
    "completions",
    "man",
];

#[test]
fn completions_contain_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (status, script, err) = run(["completions", shell]);
        assert_eq!((status, err.as_str()), (0, ""));
        for word in COMMANDS.into_iter().chain(["tolerance", "ignore", "upgrade", "fp16"]) {
            assert!(script.contains(word), "{word} is not in the script for {shell}");
        }
    }
    assert_eq!(run(["completions", "tcl"]).0, 2);
}

#[cfg(unix)]
#[test]
fn bash_completes_commands_options_and_values() {
    let files = Files::new();
    let script = files.write("syncblob.bash", run(["completions", "bash"]).1.as_bytes());
    let complete = |words: &[&str]| {
        let last = words.len() - 1;
        let program = format!(
            "source '{}'; COMP_WORDS=({}); COMP_CWORD={last}; _syncblob syncblob '{}' '{}'; \
             echo \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.join(" "),
            words[last],
            words[last - 1]
        );
        let output = Command::new("bash").args(["-c", &program]).output().expect("bash runs");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete(&["syncblob", "ver"]), "verify");
    assert_eq!(complete(&["syncblob", "diff", "--tol"]), "--tolerance");
    assert_eq!(complete(&["syncblob", "info", "--as", "caffe"]), "caffemodel");
    assert_eq!(complete(&["syncblob", "prot"]), "prototxt");
    assert_eq!(complete(&["syncblob", "convert", "--swap"]), "--swap-rb");
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let (status, page, err) = run(["man"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(page.contains(".TH syncblob 1") && page.contains("syncblob\\-diff(1)"), "{page}");
    for command in COMMANDS {
        let (status, page, _) = run(["man", command]);
        assert_eq!(status, 0);
        for part in [&format!(".TH syncblob-{command} 1"), "Examples:", "Exit status:"] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
    }
    let (status, _, err) = run(["man", "inform"]);
    assert_eq!(status, 2);
    assert!(err.contains("syncblob --help"), "{err}");
}

#[test]
fn groff_formats_the_manual_without_a_warning() {
    if Command::new("groff").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("not tested: groff is not installed");
        return;
    }
    let files = Files::new();
    for command in COMMANDS {
        let page = files.write("page.1", run(["man", command]).1.as_bytes());
        let mut groff = Command::new("groff");
        let output = groff.args(["-man", "-Tutf8", "-ww", "-k"]).arg(&page).output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
        assert!(output.stdout.len() > 300);
    }
}

#[cfg(unix)]
#[test]
fn a_full_standard_output_is_status_1() {
    for arguments in [["completions", "bash"], ["man", "info"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_syncblob"));
        let output = program.args(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"));
    }
}
