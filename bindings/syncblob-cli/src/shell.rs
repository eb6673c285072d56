//! `completions` and `man`: generate shell completions and manual pages from the definition of the
//! arguments.

use std::io::{self, Write};

use clap_complete::Shell;
use clap_mangen::Man;

use crate::standard_output::StandardOutput;
use crate::Status;

#[derive(clap::Subcommand)]
pub enum Command {
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// Print a script that completes commands in a shell
///
/// Save the output in a file where your shell looks for completions.
#[derive(clap::Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub struct CompletionsArguments {
    /// The shell that will run the script
    #[arg(value_enum)]
    shell: Shell,
}

const COMPLETIONS_HELP: &str = "\
Examples:
  syncblob completions bash > ~/.local/share/bash-completion/completions/syncblob
  syncblob completions fish > ~/.config/fish/completions/syncblob.fish
  syncblob completions zsh > ~/.zfunc/_syncblob   # a folder of $fpath

Exit status:
  0  the completions were printed
  1  standard output could not be written
  2  wrong usage";

/// Print a page of the manual, in roff
///
/// The page describes the program, or one of its commands.
#[derive(clap::Args)]
#[command(after_help = MAN_HELP)]
pub struct ManArguments {
    /// Print the page of this command, instead of the program's
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

const MAN_HELP: &str = "\
Examples:
  syncblob man | man -l -
  syncblob man diff | man -l -
  syncblob man diff > ~/.local/share/man/man1/syncblob-diff.1

Exit status:
  0  the page was printed
  1  standard output could not be written
  2  wrong usage, or there is no such command";

/// The text at the bottom of a manual page.
const SOURCE: &str = concat!("syncblob ", env!("CARGO_PKG_VERSION"));

/// Prints a script or a page of the manual, derived from `program`, the definition of the
/// arguments.
pub fn run(command: &Command, program: clap::Command) -> io::Result<Status> {
    match command {
        Command::Completions(arguments) => completions(arguments, program),
        Command::Man(arguments) => man(arguments, program),
    }
}

fn completions(arguments: &CompletionsArguments, mut program: clap::Command) -> io::Result<Status> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new(); // clap_complete would panic if it wrote to a closed output
    clap_complete::generate(arguments.shell, &mut program, name, &mut script);
    write(&script)
}

fn man(arguments: &ManArguments, mut program: clap::Command) -> io::Result<Status> {
    program.build();
    let subject = match &arguments.command {
        None => program,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                let name = crate::text::printable(name).into_owned();
                crate::complain(&format_args!(
                    "no command is called \"{name}\"; `syncblob --help` lists them"
                ));
                return Ok(Status::from(2));
            }
        },
    };
    let mut page = Vec::new();
    Man::new(subject).source(SOURCE).render(&mut page)?;
    write(&page)
}

fn write(bytes: &[u8]) -> io::Result<Status> {
    let mut out = StandardOutput::lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(Status::SUCCESS)
}
