//! The command `syncblob` as a function. The command inspects and converts Caffe's model files.
//! [`conversion::Conversion`] is for programs that convert without a command line.
#![deny(unsafe_code)] // except for signals, file calls, standard output and loaded backends

mod advice;
pub mod conversion;
mod convert;
mod devices;
mod diff;
mod info;
mod interrupt;
mod json;
pub mod naming;
mod net;
mod output;
mod picture;
mod progress;
mod prototxt;
mod report;
#[cfg(not(target_os = "wasi"))]
mod shell;
mod show;
mod source;
mod standard_output;
mod stats;
mod summary;
mod system;
mod table;
mod tensors;
mod text;
mod values;
mod verify;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use syncblob::{Error, Format};

use crate::info::{Info, Reader};
use crate::net::Listing;
use crate::source::{explained, Failure, Source};
use crate::standard_output::StandardOutput;
use crate::text::printable;

/// Look into Caffe's model files and convert them: .caffemodel, .solverstate,
/// mean.binaryproto
#[derive(Parser)]
#[command(name = "syncblob", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  syncblob info resnet.caffemodel
  syncblob convert resnet.caffemodel resnet.safetensors
  syncblob convert deploy.prototxt resnet.caffemodel resnet.onnx
  syncblob diff before.caffemodel after.caffemodel
  syncblob verify *.caffemodel

For more, with examples: syncblob COMMAND --help";

#[derive(Subcommand)]
enum Command {
    Info(InfoArguments),
    Convert(convert::Arguments),
    Diff(diff::Arguments),
    Show(show::Arguments),
    Report(report::Arguments),
    Verify(verify::Arguments),
    Prototxt(prototxt::Arguments),
    Devices(devices::Arguments),
    #[cfg(not(target_os = "wasi"))]
    #[command(flatten)]
    Shell(shell::Command),
}

impl Command {
    /// Returns the exit status for output that cannot be printed: 1. For `diff` and `verify` the
    /// status is 2, because their status 1 reports differences or findings.
    fn unprinted(&self) -> Status {
        match self {
            Self::Diff(_) | Self::Verify(_) => Status::from(2),
            _ => Status::FAILURE,
        }
    }
}

/// List layers, types, shapes, counts, bytes and sums
///
/// The command indexes and checks each file, then reads one blob at a time. The command needs about
/// as much memory as the largest blob.
///
/// For a model that contains a net, the command also lists inputs and outputs, with known shapes.
/// For a prototxt, the command lists the layers of phase TEST, their bottoms and tops, and the
/// shapes. For safetensors, npz and npy files, the command lists the tensors with shapes, types and
/// counts.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 if all files were read; 1 if a file was not: nothing is \
    printed for it, and the others are read;\n2 for wrong usage.",
    after_long_help = AFTER_HELP)]
struct InfoArguments {
    /// The files to read
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print one line of JSON for each file
    ///
    /// The schema is schema/info-v1.schema.json in the program's sources.
    #[arg(long)]
    json: bool,

    /// Read the files as this format, instead of detecting it
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    format: Option<FormatArgument>,
}

const AFTER_HELP: &str = "\
Examples:
  syncblob info resnet.caffemodel
  syncblob info --json *.caffemodel | jq -c '[.file, (.layers | length)]'
  syncblob info --as blob mean.binaryproto
  syncblob info deploy.prototxt

Exit status:
  0  all files were read
  1  a file is broken, exceeds a limit or has a blob that cannot be loaded.
     The reason is on standard error. Nothing is printed for that file on
     standard output; the other files are still read
  2  wrong usage";

#[derive(Clone, Copy, ValueEnum)]
enum FormatArgument {
    /// BlobProto, such as mean.binaryproto
    Blob,
    /// NetParameter: the layers of a net
    Caffemodel,
    /// SolverState: the history of a solver
    Solverstate,
}

impl From<FormatArgument> for Format {
    fn from(format: FormatArgument) -> Self {
        match format {
            FormatArgument::Blob => Self::Blob,
            FormatArgument::Caffemodel => Self::Caffemodel,
            FormatArgument::Solverstate => Self::Solverstate,
        }
    }
}

/// The exit status of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u8);

impl Status {
    const SUCCESS: Self = Self(0);
    const FAILURE: Self = Self(1);

    /// Returns the process's exit code.
    pub fn code(self) -> u8 {
        self.0
    }
}

impl From<u8> for Status {
    fn from(code: u8) -> Self {
        Self(code)
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        status.code().into()
    }
}

/// Runs the command. The first argument is the command's own name. Prints to standard output and
/// standard error.
///
/// While `run` writes a file, it handles SIGINT, SIGTERM and SIGHUP, unless the program ignores
/// them. A signal stops the writing. Before `run` returns, it restores the program's signal actions
/// and raises the received signal again.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Status {
    let command = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments.command,
        Err(error) => return wrong_usage(&error),
    };
    let unprinted = command.unprinted();
    let done = match command {
        Command::Info(arguments) => info(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Devices(arguments) => devices::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Prototxt(arguments) => prototxt::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        #[cfg(not(target_os = "wasi"))]
        Command::Shell(command) => shell::run(&command, Arguments::command()),
    };
    done.unwrap_or_else(|error| not_printed(&error, unprinted))
}

fn not_printed(error: &io::Error, status: Status) -> Status {
    // If the reader of standard output has closed the pipe, only the exit status reports the error.
    if error.kind() != io::ErrorKind::BrokenPipe {
        complain(&format_args!("standard output: {error}"));
    }
    status
}

fn wrong_usage_of(name: &str, kind: clap::error::ErrorKind, text: impl Display) -> Status {
    let mut command = Arguments::command();
    command.build();
    let subcommand = command.find_subcommand_mut(name).expect("a subcommand");
    wrong_usage(&subcommand.error(kind, text))
}

fn wrong_usage(error: &clap::Error) -> Status {
    let printed = match error.use_stderr() {
        true => error.print().or(Ok(())), // a failure to print cannot be printed
        false => standard_output::check()
            .and_then(|()| error.print())
            .and_then(|()| io::stdout().flush()),
    };
    match printed {
        Ok(()) => Status(u8::try_from(error.exit_code()).unwrap_or(2)),
        Err(error) => not_printed(&error, Status::FAILURE),
    }
}

/// Returns the exit status. An `Err` means that standard output could not be written.
fn info(arguments: &InfoArguments) -> io::Result<Status> {
    let mut out = BufWriter::new(StandardOutput::lock());
    let reader = match Reader::new(arguments.format.map(Format::from), arguments.json) {
        Ok(reader) => reader,
        Err(error) => {
            complain(&describe(&error));
            return Ok(Status::FAILURE);
        }
    };
    let mut status = Status::SUCCESS;
    for file in &arguments.files {
        // If `Source` cannot open the file, `reader` opens the file, because the reader's errors
        // have more details.
        let format = tensors::format_of(file).filter(|_| arguments.format.is_none());
        match format.map(|format| Source::open(file, Some(format))) {
            Some(Ok(source)) if !source.tensors.is_empty() => {
                print_tensors(&mut out, file, &source, arguments.json)?;
                continue;
            }
            _ => {}
        }
        match reader.read(file) {
            Ok(info) => print(&mut out, &info, arguments.json)?,
            Err(error) if advice::is_prototxt(file, &error) && arguments.format.is_none() => {
                match Listing::read(file) {
                    Ok(net) => print_net(&mut out, file, &net, arguments.json)?,
                    Err(failure) => {
                        complain_of(file, &failure);
                        status = Status::FAILURE;
                    }
                }
            }
            Err(error) => {
                // If the library did not detect a format, the error of a reader for another format
                // may be more helpful.
                let is_named = arguments.format.is_some() || advice::known(&error).is_some();
                let failure = error.into();
                let failure = if is_named { failure } else { explained(file, failure) };
                complain_of(file, &failure);
                status = Status::FAILURE;
            }
        }
    }
    Ok(status)
}

fn print_tensors(out: &mut impl Write, file: &Path, source: &Source, json: bool) -> io::Result<()> {
    let name = file.as_os_str().to_string_lossy();
    if json {
        tensors::write_json(out, &name, source)?;
    } else {
        tensors::write(out, &name, source)?;
    }
    out.flush()
}

fn print_net(out: &mut impl Write, file: &Path, net: &Listing, json: bool) -> io::Result<()> {
    let name = file.as_os_str().to_string_lossy();
    if json {
        json::write_line(out, &net::Line::new(&name, net))?;
    } else {
        net::write(out, &name, net)?;
    }
    out.flush()
}

fn print(out: &mut impl Write, info: &Info, json: bool) -> io::Result<()> {
    if json {
        json::write_line(out, info)?;
    } else {
        table::write(out, info)?;
    }
    out.flush()
}

/// Prints a failure. If standard error is closed or full, only the exit status reports the failure.
fn complain(what: &impl Display) {
    let _ = writeln!(io::stderr(), "syncblob: {what}");
}

/// Prints a failure of several lines, of which only the first begins with "syncblob: ".
fn complain_lines(text: &str) {
    let mut lines = text.lines();
    complain(&printable(lines.next().unwrap_or_default()));
    for line in lines {
        let _ = writeln!(io::stderr(), "{}", printable(line));
    }
}

/// Prints a note, which does not change the exit status. Callers pass this function as a
/// [`convert::Note`].
fn note(what: &dyn Display) {
    complain(&format_args!("note: {what}"));
}

/// Prints a failure. Escapes the text, because it may contain a path or names from the file.
fn complain_of(file: &Path, failure: &Failure) {
    let (name, text) = (file.as_os_str().to_string_lossy(), failure.to_string());
    let advice = advice::about(file, failure);
    let (name, text) = (printable(&name), printable(&text));
    complain(&format_args!("{name}: {text}{advice}"));
}

/// Returns one text: the status's name and the error's message, which includes the position.
/// Escapes unprintable characters, because the message may contain a path.
fn describe(error: &Error) -> String {
    printable(&advice::useful_half_first(error, &error.to_string())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples(command: &clap::Command) -> Vec<String> {
        let help = command.clone().render_long_help().to_string();
        let after = help.split_once("Examples:\n").map_or("", |(_, after)| after);
        let lines = after.lines().take_while(|line| line.starts_with("  "));
        lines.map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn the_definition_of_the_arguments_is_valid() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_has_valid_examples() {
        let program = Arguments::command();
        let commands: Vec<_> = program.get_subcommands().collect();
        for command in commands.into_iter().chain([&program]) {
            let examples = examples(command);
            assert!(!examples.is_empty(), "{}", command.get_name());
            for example in examples {
                let words = example.split(['|', '>', '&', '#']).next().unwrap_or("");
                let parsed = Arguments::try_parse_from(words.split_whitespace());
                assert!(parsed.is_ok(), "{example}: {}", parsed.err().unwrap());
                let name = command.get_name();
                assert!(name == "syncblob" || words.split_whitespace().nth(1) == Some(name));
            }
        }
    }
}
