//! `devices`: lists the devices that can be opened.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use syncblob::{Blob, Context, Error, ErrorKind, Float, Part, Result};
use unicode_width::UnicodeWidthStr;

use crate::standard_output::StandardOutput;
use crate::table::write_cells;
use crate::text::printable;
use crate::{complain, describe, note, Status};

/// List the devices that this program can open
///
/// The command opens each device and computes with one value. The table shows
///
/// - the device's name, as programs pass it to the library;
///
/// - its backend: built in, or the library of --backend;
///
/// - the types for which the device has arithmetic;
///
/// - whether the host shares the device's memory;
///
/// - whether the device queues work on streams;
///
/// - why the device cannot be opened, or lacks arithmetic.
///
/// sim:0 is a simulated device for tests.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 if the devices were listed, even if none can be opened; \
    1 if a LIBRARY cannot be loaded;\n2 for wrong usage.",
    after_long_help = AFTER_HELP)]
pub struct Arguments {
    /// Load a library that contains a backend, and list its devices, too
    ///
    /// LIBRARY is a path; no folders are searched. The library's code runs with all your rights:
    /// load only files that you trust.
    #[arg(long = "backend", value_name = "LIBRARY")]
    libraries: Vec<PathBuf>,

    /// Print one line of JSON for each device
    ///
    /// The schema is schema/devices-v1.schema.json in the program's sources.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  syncblob devices
  syncblob devices --backend ./libsyncblob-opencl.so
  syncblob devices --json | jq -r 'select(.opened).device'

Exit status:
  0  the devices were listed, even if none can be opened
  1  a LIBRARY cannot be loaded. The reason is on standard error; the other
     devices are still listed
  2  wrong usage";

/// The maximum number of devices to open per backend, because a backend may accept every device
/// number.
const MAX_DEVICES: usize = 32;

struct Device<'a> {
    name: String,
    library: Option<&'a Path>,
    opened: bool,
    arithmetic: Vec<&'static str>,
    is_shared: bool,
    has_streams: bool,
    /// The reason why the device cannot be opened or lacks arithmetic.
    error: Option<Error>,
}

/// Returns the exit status. An `Err` means that standard output could not be written.
pub fn run(arguments: &Arguments) -> io::Result<Status> {
    let mut status = Status::SUCCESS;
    let mut devices = vec![Device::open("cpu".into(), None), Device::open("sim:0".into(), None)];
    add(&mut devices, "cuda", None);
    for library in &arguments.libraries {
        match load(library) {
            Ok(backend) => add(&mut devices, backend, Some(library)),
            Err(error) => {
                complain(&describe(&error));
                status = Status::FAILURE;
            }
        }
    }
    let mut out = BufWriter::new(StandardOutput::lock());
    match arguments.json {
        true => devices.iter().try_for_each(|device| write_json(&mut out, device))?,
        false => write_table(&mut out, &devices)?,
    }
    out.flush()?;
    Ok(status)
}

#[allow(unsafe_code)]
fn load(library: &Path) -> Result<&'static str> {
    // SAFETY: the user chose the library on the command line, and so vouches for its code.
    unsafe { syncblob::load_backend(library) }
}

/// Adds the backend's devices 0, 1 and so on, until a device does not exist. If the backend has no
/// device, adds device 0 with the error.
fn add<'a>(devices: &mut Vec<Device<'a>>, backend: &str, library: Option<&'a Path>) {
    for number in 0..=MAX_DEVICES {
        let device = Device::open(format!("{backend}:{number}"), library);
        let exists =
            device.opened || device.error.as_ref().map(Error::kind) != Some(ErrorKind::NoDevice);
        if exists && number == MAX_DEVICES {
            note(&format_args!("only the first {MAX_DEVICES} devices of \"{backend}\" are listed"));
            return;
        }
        if exists || number == 0 {
            devices.push(device);
        }
        if !exists {
            return;
        }
    }
}

impl<'a> Device<'a> {
    fn open(name: String, library: Option<&'a Path>) -> Self {
        let context = Context::builder().device(&*name).build();
        let mut device = Self {
            name,
            library,
            opened: context.is_ok(),
            arithmetic: Vec::new(),
            is_shared: false,
            has_streams: false,
            error: None,
        };
        let tried = context.and_then(|context| device.examine(&context));
        device.error = tried.err();
        device
    }

    fn examine(&mut self, context: &Context) -> Result<()> {
        self.has_streams = context.stream().is_ok();
        let single = self.compute::<f32>(context);
        let double = self.compute::<f64>(context);
        single.and(double)
    }

    /// Adds the type to `arithmetic` if the device computes a correct sum.
    fn compute<T: Float + From<u8>>(&mut self, context: &Context) -> Result<()> {
        let mut blob = Blob::<T>::in_context(context).full([1], T::from(3))?;
        if context.has_device() {
            let on_host = blob.data()?.as_ptr().addr();
            self.is_shared = blob.gpu_mut_ptr(Part::Data)?.addr() == on_host;
        }
        blob.scale(Part::Data, 2.0)?;
        if blob.asum(Part::Data)? == 6.0 {
            self.arithmetic.push(T::DTYPE.name());
        }
        Ok(())
    }

    fn cells(&self) -> [String; 6] {
        let library = self.library.map(Path::to_string_lossy);
        let [memory, streams] = match (self.opened, self.is_shared, self.has_streams) {
            (false, ..) => ["-", "-"],
            (true, shared, streams) => {
                [if shared { "shared" } else { "separate" }, if streams { "yes" } else { "no" }]
            }
        };
        [
            self.name.clone(),
            library.map_or("built in".into(), |path| printable(&path).into_owned()),
            if self.arithmetic.is_empty() { "-".into() } else { self.arithmetic.join(", ") },
            if self.name == "cpu" { "host".into() } else { memory.into() },
            streams.into(),
            self.error.as_ref().map(describe).unwrap_or_default(),
        ]
    }
}

fn write_table(out: &mut impl Write, devices: &[Device]) -> io::Result<()> {
    let headings = ["device", "backend", "arithmetic", "memory", "streams", ""].map(String::from);
    let rows: Vec<_> = [headings].into_iter().chain(devices.iter().map(Device::cells)).collect();
    let widths =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0));
    rows.iter().try_for_each(|row| write_cells(out, row, &widths, row.len()))
}

fn write_json(out: &mut impl Write, device: &Device) -> io::Result<()> {
    let error = device.error.as_ref();
    let value = json!({
        "schema": 1, "device": device.name, "library": device.library.map(Path::to_string_lossy),
        "opened": device.opened, "arithmetic": device.arithmetic,
        "shared_memory": device.is_shared, "streams": device.has_streams,
        "status": error.map(Error::code_name), "message": error.map(Error::message),
    });
    crate::json::write_line(out, &value)
}
