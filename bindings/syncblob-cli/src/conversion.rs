//! Converts weights between formats for Rust programs, one tensor at a time.

use std::cell::RefCell;
use std::error::Error;
use std::fmt::{self, Display};
use std::path::Path;

use glob::Pattern;
use syncblob::Dtype;

pub use crate::convert::Scheme;
pub use crate::source::FileFormat;

use crate::convert::plan::Wishes;
use crate::convert::{convert, output_format, Task};
use crate::interrupt::Interrupt;

/// The options of a conversion. Each method sets the option of `syncblob convert` that has the
/// method's name. Error messages contain the option's name. Conversions print nothing and handle no
/// signals.
///
/// ```
/// use syncblob::{Blob, Format, Model, Payload};
/// use syncblob_cli::conversion::{Conversion, Scheme};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (net, tensors) = (folder.path().join("a.caffemodel"), folder.path().join("a.safetensors"));
/// let mut model = Model::create(Format::Caffemodel)?;
/// let layer = model.add_layer("fc", "InnerProduct")?;
/// model.add_blob(layer, &Blob::<f32>::full([2, 3], 0.5)?, Payload::Data)?;
/// model.save(&net)?;
/// let losses = Conversion::new().names(Scheme::Torch).run(&net, &tensors)?;
/// assert!(losses.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    from: Option<FileFormat>,
    to: Option<FileFormat>,
    scheme: Option<Scheme>,
    dtype: Option<Dtype>,
    only: Vec<Pattern>,
    force: bool,
}

impl Conversion {
    /// Creates default options: the input's content and the output's extension determine the
    /// formats, and values do not change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the input as this format, without detecting the format.
    #[must_use]
    pub fn from(self, format: FileFormat) -> Self {
        Self { from: Some(format), ..self }
    }

    /// Writes the output in this format, and ignores the output's extension.
    #[must_use]
    pub fn to(self, format: FileFormat) -> Self {
        Self { to: Some(format), ..self }
    }

    /// Chooses the names and shapes of a net's tensors in the output. If the output is .safetensors
    /// or .npz, the default is PyTorch's names and shapes.
    #[must_use]
    pub fn names(self, scheme: Scheme) -> Self {
        Self { scheme: Some(scheme), ..self }
    }

    /// Rounds all values to this type: f16, bf16, f32 or f64.
    #[must_use]
    pub fn dtype(self, dtype: Dtype) -> Self {
        Self { dtype: Some(dtype), ..self }
    }

    /// Adds a pattern. Only tensors whose name in the output matches an added pattern are
    /// converted.
    ///
    /// # Errors
    /// Fails if `pattern` is not a valid pattern, for example `[`.
    pub fn only(mut self, pattern: &str) -> Result<Self, Refusal> {
        let refuse = |error| Refusal(format!("--only '{pattern}': {error}"));
        self.only.push(Pattern::new(pattern).map_err(refuse)?);
        Ok(self)
    }

    /// Sets whether to replace an existing output. By default, an existing output is an error.
    #[must_use]
    pub fn force(self, force: bool) -> Self {
        Self { force, ..self }
    }

    /// Converts one file. Returns a warning for each kind of lost data. Warnings may contain names
    /// from the input. The output is written to a temporary file, which is renamed when it is
    /// complete.
    ///
    /// # Errors
    /// Fails if a file cannot be read, converted or written. The output is then unchanged.
    pub fn run(
        &self,
        input: impl AsRef<Path>,
        output: impl AsRef<Path>,
    ) -> Result<Vec<String>, Refusal> {
        let (input, output) = (input.as_ref(), output.as_ref());
        let refuse = |text: String| Err(Refusal(format!("{}: {text}", output.display())));
        let Some(format) = output_format(self.to, output) else {
            return refuse("its extension is unknown: set the format with --to".into());
        };
        match self.dtype {
            None | Some(Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64) => {}
            Some(dtype) => {
                return refuse(format!("--dtype must be f16, bf16, f32 or f64, not {dtype}"));
            }
        }
        let losses = RefCell::new(Vec::new());
        let task = Task {
            input,
            output,
            from: self.from,
            wishes: Wishes { format, scheme: self.scheme, dtype: self.dtype, only: &self.only },
            force: self.force,
            dry_run: false,
            interactive: false,
            note: &|loss| losses.borrow_mut().push(loss.to_string()),
        };
        match convert(&task, &Interrupt::default()) {
            Ok(_) => Ok(losses.into_inner()),
            Err(failure) => Err(Refusal(failure.to_string())),
        }
    }
}

/// The reason why a file was not converted. The text contains the file's path, the error and
/// advice, and may contain names from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Refusal {}
