//! `prototxt`: prints the net that a model contains.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use syncblob::{Format, Model};
use syncblob_net::{Limits, Upgraded};

use crate::convert::onnx::failure;
use crate::source::{Failure, Result};
use crate::standard_output::StandardOutput;
use crate::{advice, complain_of, note, Status};

/// Print the net in a model as a prototxt
///
/// A .caffemodel holds the layers of its net with their parameters and connections, so
/// a lost prototxt can be restored. The text is in Caffe's current form, even if an old
/// version of Caffe wrote the file. The text includes the layers for training, but rarely the
/// shapes of the inputs.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 if the net was printed; 1 if it was not; 2 for wrong usage.",
    after_long_help = AFTER_HELP)]
pub struct Arguments {
    /// The model to read
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Read a prototxt instead, and convert it from V0 or V1 to Caffe's current form
    #[arg(long)]
    upgrade: bool,
}

const AFTER_HELP: &str = "\
Examples:
  syncblob prototxt resnet.caffemodel > resnet.prototxt
  syncblob prototxt --upgrade deploy_v1.prototxt > deploy.prototxt

Exit status:
  0  the net was printed
  1  FILE cannot be read, or is not a net. The reason is on standard error
  2  wrong usage";

/// Returns the exit status. An `Err` means that standard output could not be written.
pub fn run(arguments: &Arguments) -> io::Result<Status> {
    let net = match arguments.upgrade {
        true => upgraded(&arguments.file),
        false => of_model(&arguments.file),
    };
    let net = match net {
        Ok(net) => net,
        Err(failure) => {
            complain_of(&arguments.file, &failure);
            return Ok(Status::FAILURE);
        }
    };
    net.notes.iter().for_each(|text| note(text));
    let mut out = BufWriter::new(StandardOutput::lock());
    write!(out, "{}", net.net)?;
    out.flush()?;
    Ok(Status::SUCCESS)
}

fn of_model(path: &Path) -> Result<Upgraded> {
    let refuse = |text: &str| Err(Failure::Unsupported(text.into()));
    match Model::open(path) {
        Ok(model) if model.format() == Format::Caffemodel => {
            Upgraded::from_model(&model, &Limits::default()).map_err(failure)
        }
        Ok(model) => refuse(&format!("a {} has no net: give a .caffemodel", model.format().name())),
        Err(error) if advice::is_prototxt(path, &error) => {
            refuse("this is a prototxt already: to convert it to the current form, use --upgrade")
        }
        Err(error) => Err(error.into()),
    }
}

fn upgraded(path: &Path) -> Result<Upgraded> {
    let text = Limits::default().read_prototxt(path)?;
    Upgraded::from_prototxt(&text, &Limits::default()).map_err(|error| match Model::open(path) {
        Ok(_) => Failure::Unsupported("this is a model: leave out --upgrade".into()),
        Err(_) => failure(error),
    })
}
