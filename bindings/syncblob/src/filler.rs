mod text;

use syncblob_sys as sys;

use crate::any::both;
use crate::ffi::{check, static_text};
#[cfg(doc)]
use crate::Blob;
use crate::{Error, ErrorKind, Part, Result};

/// The meaning of `n` in [`Filler::Xavier`] and [`Filler::Msra`]. For a shape `[d0, d1, …]` the
/// number of inputs of each output is `count / d0`. The number of outputs of each input is
/// `count / d1`. For a shape with one axis, the number of outputs is `count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[doc(alias = "VarianceNorm")]
#[non_exhaustive]
pub enum Variance {
    /// The number of inputs.
    #[default]
    #[doc(alias = "FAN_IN")]
    FanIn,
    /// The number of outputs.
    #[doc(alias = "FAN_OUT")]
    FanOut,
    /// The mean of the numbers of inputs and outputs.
    #[doc(alias = "AVERAGE")]
    Average,
}

impl Variance {
    fn code(self) -> i32 {
        match self {
            Self::FanIn => sys::SB_VARIANCE_FAN_IN,
            Self::FanOut => sys::SB_VARIANCE_FAN_OUT,
            Self::Average => sys::SB_VARIANCE_AVERAGE,
        }
    }

    const ALL: [Self; 3] = [Self::FanIn, Self::FanOut, Self::Average];

    /// Returns Caffe's name.
    fn name(self) -> &'static str {
        match self {
            Self::FanIn => "FAN_IN",
            Self::FanOut => "FAN_OUT",
            Self::Average => "AVERAGE",
        }
    }

    fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }
}

/// Caffe's fillers, which write a blob's initial values: see [`Blob::initialize`].
///
/// ```
/// use syncblob::{Blob, Filler, Variance};
/// # fn main() -> syncblob::Result<()> {
/// let mut weights = Blob::<f32>::zeros([64, 3, 7, 7])?;
/// weights.initialize(&Filler::Msra { variance: Variance::FanOut }, 42)?;
///
/// let mut bias = Blob::<f32>::zeros([64])?;
/// bias.initialize(&Filler::Constant { value: 0.1 }, 0)?;
/// assert_eq!(bias.data()?, [0.1; 64]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(alias = "FillerParameter")]
#[non_exhaustive]
pub enum Filler {
    /// The same value, which may be infinite, for all elements.
    Constant {
        /// The value.
        value: f64,
    },
    /// Uniform on `[min, max]`.
    Uniform {
        /// The least value.
        min: f64,
        /// The greatest value.
        max: f64,
    },
    /// Normal. With `sparse` some elements, chosen at random, are zero.
    Gaussian {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        std: f64,
        /// Each element keeps its value with a probability of `sparse` divided by the first
        /// dimension. All other elements become zero. With `None` every element keeps its value.
        sparse: Option<u32>,
    },
    /// Uniform on `(0, 1)`. Then each element is divided by the sum of its row. Axis 0 numbers the
    /// rows.
    PositiveUnitball,
    /// Uniform on `[-a, a]` with `a = sqrt(3 / n)`.
    Xavier {
        /// The meaning of `n`.
        variance: Variance,
    },
    /// Normal with mean 0 and variance `2 / n`.
    #[doc(alias = "He")]
    Msra {
        /// The meaning of `n`.
        variance: Variance,
    },
    /// The weights of bilinear upsampling. They are not random.
    Bilinear,
}

/// Returns the filler of zeros, Caffe's default.
impl Default for Filler {
    fn default() -> Self {
        Self::Constant { value: 0.0 }
    }
}

impl Filler {
    /// Makes a filler from a `FillerParameter` message. Missing fields have Caffe's defaults.
    ///
    /// ```
    /// use syncblob::{Filler, Variance};
    /// # fn main() -> syncblob::Result<()> {
    /// let message = b"\x0a\x06xavier\x40\x02"; // type: "xavier" variance_norm: AVERAGE
    /// let filler = Filler::from_proto(message)?;
    /// assert_eq!(filler, Filler::Xavier { variance: Variance::Average });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Malformed`](ErrorKind::Malformed), with the field and its offset. Reasons: the message
    ///   is damaged, the type or `variance_norm` is unknown, a number is invalid for every shape,
    ///   or a type other than gaussian has a `sparse`. Other numbers that the type does not use are
    ///   ignored.
    /// - [`DataLimit`](ErrorKind::DataLimit) above 2 GiB − 1.
    pub fn from_proto(bytes: &[u8]) -> Result<Self> {
        let mut raw = defaults();
        let (start, len) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: `bytes` is valid for its length, `raw` contains its size.
        check(|err| unsafe { sys::sb_filler_parse(start, len, &mut raw, err) })?;
        Self::from_raw(&raw).ok_or_else(|| {
            let (kind, variance) = (raw.type_, raw.variance_norm);
            let message = format!("unknown filler type {kind} or variance_norm {variance}");
            Error::new(ErrorKind::Unsupported, message)
        })
    }

    /// Returns Caffe's name of the type, such as `"positive_unitball"`.
    pub fn type_name(&self) -> &'static str {
        // SAFETY: the function takes any number and returns static text.
        unsafe { static_text(sys::sb_filler_type_name(self.code())) }
    }

    fn code(&self) -> i32 {
        match self {
            Self::Constant { .. } => sys::SB_FILLER_CONSTANT,
            Self::Uniform { .. } => sys::SB_FILLER_UNIFORM,
            Self::Gaussian { .. } => sys::SB_FILLER_GAUSSIAN,
            Self::PositiveUnitball => sys::SB_FILLER_POSITIVE_UNITBALL,
            Self::Xavier { .. } => sys::SB_FILLER_XAVIER,
            Self::Msra { .. } => sys::SB_FILLER_MSRA,
            Self::Bilinear => sys::SB_FILLER_BILINEAR,
        }
    }

    fn from_raw(raw: &sys::sb_filler) -> Option<Self> {
        let variance = Variance::from_code(raw.variance_norm)?;
        Some(match raw.type_ {
            sys::SB_FILLER_CONSTANT => Self::Constant { value: raw.value },
            sys::SB_FILLER_UNIFORM => Self::Uniform { min: raw.min, max: raw.max },
            sys::SB_FILLER_GAUSSIAN => {
                let sparse = match raw.sparse {
                    -1 => None,
                    sparse => Some(u32::try_from(sparse).ok()?),
                };
                Self::Gaussian { mean: raw.mean, std: raw.std, sparse }
            }
            sys::SB_FILLER_POSITIVE_UNITBALL => Self::PositiveUnitball,
            sys::SB_FILLER_XAVIER => Self::Xavier { variance },
            sys::SB_FILLER_MSRA => Self::Msra { variance },
            sys::SB_FILLER_BILINEAR => Self::Bilinear,
            _ => return None,
        })
    }

    fn to_raw(self) -> Result<sys::sb_filler> {
        let mut raw = sys::sb_filler { type_: self.code(), ..defaults() };
        match self {
            Self::Constant { value } => raw.value = value,
            Self::Uniform { min, max } => (raw.min, raw.max) = (min, max),
            Self::Gaussian { mean, std, sparse } => {
                (raw.mean, raw.std) = (mean, std);
                raw.sparse = sparse.map_or(Ok(-1), to_sparse)?;
            }
            Self::Xavier { variance } | Self::Msra { variance } => {
                raw.variance_norm = variance.code();
            }
            Self::PositiveUnitball | Self::Bilinear => {}
        }
        Ok(raw)
    }
}

fn to_sparse(sparse: u32) -> Result<i32> {
    i32::try_from(sparse).map_err(|_| {
        Error::new(ErrorKind::InvalidArgument, format!("sparse is {sparse}, beyond 31 bits"))
    })
}

fn defaults() -> sys::sb_filler {
    let mut raw = std::mem::MaybeUninit::uninit();
    // SAFETY: `sb_filler_init` writes the whole struct.
    unsafe {
        sys::sb_filler_init(raw.as_mut_ptr(), size_of::<sys::sb_filler>());
        raw.assume_init()
    }
}

both! {
    impl Float {
        /// Initialises the data on the host, without copying old values from the device. An element
        /// depends only on the filler, the seed, its index and `T` (for
        /// [`PositiveUnitball`](Filler::PositiveUnitball) also on its row). Therefore every machine
        /// computes the same element, with any number of threads. Equal seeds produce equal
        /// numbers, so use a different seed for each blob. For a blob without elements the call
        /// checks the filler's numbers, but not the shape.
        ///
        /// # Errors
        /// - [`InvalidArgument`](ErrorKind::InvalidArgument) for NaN, an infinite number (except a
        ///   constant), `min > max`, `std < 0`, or a `sparse` above the first dimension.
        /// - [`ShapeMismatch`](ErrorKind::ShapeMismatch) if the shape does not fit the filler.
        ///   `Bilinear` needs four axes, the last two equal. `PositiveUnitball`, `Xavier` and
        ///   `Msra` need at least one axis.
        /// - [`Unsupported`](ErrorKind::Unsupported) for a [`BlobAny`](crate::BlobAny) whose
        ///   elements are neither `f32` nor `f64`.
        /// - [`Shared`](ErrorKind::Shared).
        /// - Out of memory.
        #[doc(alias("Fill", "sb_blob_fill"))]
        pub fn initialize(&mut self, filler: &Filler, seed: u64) -> Result<()> {
            self.need_unique(Part::Data)?;
            let raw = filler.to_raw()?;
            // SAFETY: the blob is live and its data has one owner. `raw` lives through the call.
            check(|err| unsafe { sys::sb_blob_fill(self.raw(), &raw, seed, err) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: [Filler; 11] = [
        Filler::Constant { value: -2.5 },
        Filler::Uniform { min: -3.0, max: 4.0 },
        Filler::Gaussian { mean: 1.5, std: 2.0, sparse: None },
        Filler::Gaussian { mean: 1.5, std: 2.0, sparse: Some(0) },
        Filler::Gaussian { mean: 1.5, std: 2.0, sparse: Some(7) },
        Filler::PositiveUnitball,
        Filler::Xavier { variance: Variance::FanIn },
        Filler::Xavier { variance: Variance::FanOut },
        Filler::Msra { variance: Variance::FanOut },
        Filler::Msra { variance: Variance::Average },
        Filler::Bilinear,
    ];

    #[test]
    fn each_filler_is_equal_after_a_conversion_to_c_and_back() {
        for filler in EACH {
            let raw = filler.to_raw().unwrap();
            assert_eq!(raw.struct_size, size_of::<sys::sb_filler>());
            assert_eq!(Filler::from_raw(&raw), Some(filler));
            assert_eq!(filler.to_string().parse::<Filler>().unwrap(), filler, "{filler}");
        }
    }

    #[test]
    fn unknown_numbers_of_c_are_refused() {
        let gaussian = sys::sb_filler { type_: sys::SB_FILLER_GAUSSIAN, ..defaults() };
        for unknown in [
            sys::sb_filler { type_: 7, ..defaults() },
            sys::sb_filler { variance_norm: 3, ..defaults() },
            sys::sb_filler { sparse: -2, ..gaussian },
        ] {
            assert_eq!(Filler::from_raw(&unknown), None);
        }
    }

    #[test]
    fn a_message_may_have_valid_numbers_that_its_type_does_not_use() {
        let uniform_min_is_nan = b"\x1d\0\0\xc0\x7f";
        let average = b"\x40\x02";
        let message = [&uniform_min_is_nan[..], average].concat();
        assert_eq!(Filler::from_proto(&message).unwrap(), Filler::default());
        for never_valid in [b"\x40\x03", b"\x38\x00"] {
            let error = Filler::from_proto(never_valid).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
        }
    }

    #[test]
    fn the_default_is_the_default_of_c() {
        assert_eq!(Filler::from_raw(&defaults()), Some(Filler::default()));
        assert_eq!(Variance::from_code(defaults().variance_norm), Some(Variance::default()));
    }
}
