//! The command `syncblob`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    syncblob_cli::run(std::env::args_os()).into()
}
