//! `verify`: checks that files are complete and safe, and that their values are finite and within
//! float's range.

mod check;
mod folders;
mod print;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use syncblob::{Context, OpenOptions};

use crate::standard_output::StandardOutput;
use crate::{FormatArgument, Status};

/// Check that files are complete and safe, and their values finite
///
/// Each finding is a line: the file, the layer, the blob, the problem and the problem's position.
/// The command finds
///
/// - malformed bytes, and blobs whose values are missing;
///
/// - values that are NaN or infinite, or too large for the float that Caffe
///   computes with;
///
/// - two layers with blobs, two tensors, or two members of an archive that have the same name;
///
/// - names that are not UTF-8, that control a terminal, or that an archive would unpack
///   outside the chosen folder;
///
/// - files without any blob.
///
/// The command holds one blob at a time in memory.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 if nothing was found; 1 if something was, or a file cannot \
    be read; 2 for wrong usage,\nor output that cannot be printed.",
    after_long_help = AFTER_HELP)]
pub struct Arguments {
    /// The files to check
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Check the model files in folders and their subfolders
    ///
    /// Model files end in .caffemodel, .solverstate, .binaryproto, .safetensors, .npz or .npy.
    /// Links to folders are not followed.
    #[arg(short, long)]
    recursive: bool,

    /// Print only findings: no line for a file without findings, and no summary
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    /// Print one line of JSON for each finding, and nothing else
    ///
    /// The schema is schema/verify-v1.schema.json in the program's sources.
    #[arg(long)]
    json: bool,

    /// Read the files as this format, instead of detecting it
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    format: Option<FormatArgument>,
}

const AFTER_HELP: &str = "\
Examples:
  syncblob verify resnet.caffemodel
  syncblob verify -r models
  syncblob verify --json models/*.caffemodel | jq -r .file | sort -u
  syncblob verify download.caffemodel && mv download.caffemodel models/

Exit status:
  0  nothing was found
  1  something was found. A file that cannot be read is a finding; the other
     files are still checked
  2  wrong usage, or output that cannot be printed";

pub fn run(arguments: &Arguments) -> io::Result<Status> {
    // Disables the cache of freed buffers, because the next blob rarely has the same size.
    let context = match Context::builder().host_cache(false).build() {
        Ok(context) => context,
        Err(error) => {
            crate::complain(&crate::describe(&error));
            return Ok(Status::from(2));
        }
    };
    let mut options = OpenOptions::new().context(&context);
    if let Some(format) = arguments.format {
        options = options.format(format.into());
    }
    let mut out = BufWriter::new(StandardOutput::lock());
    let (mut findings, mut clean, mut files) = (0, 0, 0);
    for file in arguments.files.iter().flat_map(|file| folders::expand(file, arguments.recursive)) {
        let file = &file;
        files += 1;
        let name = file.as_os_str().to_string_lossy();
        let before = findings;
        let checked = check::file(&options, file, arguments.format.is_some(), &mut |finding| {
            findings += 1;
            match arguments.json {
                true => print::json(&mut out, &name, finding),
                false => print::line(&mut out, &name, finding),
            }
        })?;
        clean += usize::from(findings == before);
        if findings == before && !arguments.json && !arguments.quiet {
            print::clean(&mut out, &name, &checked)?;
        }
        out.flush()?;
    }
    if files != 1 && !arguments.json && !arguments.quiet {
        print::summary(&mut out, files, files - clean, findings)?;
        out.flush()?;
    }
    Ok(if findings == 0 { Status::SUCCESS } else { Status::FAILURE })
}
