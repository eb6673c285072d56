use std::fmt;
use std::str::FromStr;

use syncblob_sys as sys;

use crate::any::BlobAny;
use crate::ffi::by_name;
use crate::{Blob, Error};

/// The type of a blob's elements, as the library numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Dtype {
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `i32`
    I32,
    /// `u32`
    U32,
    /// IEEE binary16
    F16,
    /// bfloat16
    Bf16,
    /// `i8`
    I8,
    /// `u8`
    U8,
}

impl Dtype {
    const ALL: [Self; 8] =
        [Self::F32, Self::F64, Self::I32, Self::U32, Self::F16, Self::Bf16, Self::I8, Self::U8];

    pub(crate) fn code(self) -> i32 {
        match self {
            Self::F32 => sys::SB_DTYPE_F32,
            Self::F64 => sys::SB_DTYPE_F64,
            Self::I32 => sys::SB_DTYPE_I32,
            Self::U32 => sys::SB_DTYPE_U32,
            Self::F16 => sys::SB_DTYPE_F16,
            Self::Bf16 => sys::SB_DTYPE_BF16,
            Self::I8 => sys::SB_DTYPE_I8,
            Self::U8 => sys::SB_DTYPE_U8,
        }
    }

    pub(crate) fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            sys::SB_DTYPE_F32 => Self::F32,
            sys::SB_DTYPE_F64 => Self::F64,
            sys::SB_DTYPE_I32 => Self::I32,
            sys::SB_DTYPE_U32 => Self::U32,
            sys::SB_DTYPE_F16 => Self::F16,
            sys::SB_DTYPE_BF16 => Self::Bf16,
            sys::SB_DTYPE_I8 => Self::I8,
            sys::SB_DTYPE_U8 => Self::U8,
            _ => return None,
        })
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I8 | Self::U8 => 1,
        }
    }

    /// The short name, such as `"f32"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::I8 => "i8",
            Self::U8 => "u8",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// By its short name.
impl FromStr for Dtype {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        by_name(name, "element type", &Self::ALL)
    }
}

pub(crate) mod sealed {
    /// The library's number for the type.
    pub trait Sealed {
        const CODE: i32;
    }
}

/// A type that a [`Blob`] can hold.
///
/// Sealed: the element types are those of the C library. Any bytes are a value
/// of each of them.
pub trait Element:
    sealed::Sealed + Copy + Send + Sync + PartialEq + fmt::Debug + Sized + 'static
{
    /// The type at run time.
    const DTYPE: Dtype;

    /// Whether [`word`](Element::word) says anything of some values.
    #[doc(hidden)]
    const HAS_WORDS: bool;

    /// What stands for a value that a text for people has no number for.
    #[doc(hidden)]
    fn word(&self) -> Option<&'static str>;
    #[doc(hidden)]
    fn from_word(word: &str) -> Option<Self>;
    #[doc(hidden)]
    fn wrap(blob: Blob<Self>) -> BlobAny;
    #[doc(hidden)]
    fn unwrap(any: BlobAny) -> Result<Blob<Self>, BlobAny>;
    #[doc(hidden)]
    fn unwrap_ref(any: &BlobAny) -> Option<&Blob<Self>>;
    #[doc(hidden)]
    fn unwrap_mut(any: &mut BlobAny) -> Option<&mut Blob<Self>>;
}

/// An [`Element`] that the values of Caffe's files are read into: `f32`, `f64`,
/// `i32` or `u32`. With the feature `half` also `half::f16`, which takes what NVCaffe stored as
/// halves, and nothing else.
pub trait Readable: Element {}

/// An [`Element`] that communicators combine: `f32` or `f64`, and, where the engine does and with
/// the feature `half`, `half::f16` or `half::bf16`.
pub trait Reduced: Element {}

/// An [`Element`] with arithmetic, and that Caffe's files hold: `f32` or `f64`.
pub trait Float: Readable + Reduced {}

/// Of integers, and of halves, which serde has as their bits.
macro_rules! no_words {
    () => {
        const HAS_WORDS: bool = false;

        fn word(&self) -> Option<&'static str> {
            None
        }

        fn from_word(_: &str) -> Option<Self> {
            None
        }
    };
}

macro_rules! words {
    () => {
        const HAS_WORDS: bool = true;

        fn word(&self) -> Option<&'static str> {
            Some(match *self {
                value if value.is_nan() => "NaN",
                Self::INFINITY => "inf",
                Self::NEG_INFINITY => "-inf",
                _ => return None,
            })
        }

        fn from_word(word: &str) -> Option<Self> {
            [Self::NAN, Self::INFINITY, Self::NEG_INFINITY]
                .into_iter()
                .find(|value| value.word() == Some(word))
        }
    };
}

macro_rules! element {
    ($type:ty, $dtype:ident, $code:ident, $words:ident) => {
        impl sealed::Sealed for $type {
            const CODE: i32 = sys::$code;
        }

        impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;

            $words!();

            fn wrap(blob: Blob<Self>) -> BlobAny {
                BlobAny::$dtype(blob)
            }

            fn unwrap(any: BlobAny) -> Result<Blob<Self>, BlobAny> {
                match any {
                    BlobAny::$dtype(blob) => Ok(blob),
                    other => Err(other),
                }
            }

            fn unwrap_ref(any: &BlobAny) -> Option<&Blob<Self>> {
                match any {
                    BlobAny::$dtype(blob) => Some(blob),
                    _ => None,
                }
            }

            fn unwrap_mut(any: &mut BlobAny) -> Option<&mut Blob<Self>> {
                match any {
                    BlobAny::$dtype(blob) => Some(blob),
                    _ => None,
                }
            }
        }
    };
}

element!(f32, F32, SB_DTYPE_F32, words);
element!(f64, F64, SB_DTYPE_F64, words);
element!(i32, I32, SB_DTYPE_I32, no_words);
element!(u32, U32, SB_DTYPE_U32, no_words);
element!(i8, I8, SB_DTYPE_I8, no_words);
element!(u8, U8, SB_DTYPE_U8, no_words);
#[cfg(feature = "half")]
element!(half::f16, F16, SB_DTYPE_F16, no_words);
#[cfg(feature = "half")]
element!(half::bf16, Bf16, SB_DTYPE_BF16, no_words);

impl Readable for f32 {}
impl Readable for f64 {}
impl Readable for i32 {}
impl Readable for u32 {}
#[cfg(feature = "half")]
impl Readable for half::f16 {}
impl Reduced for f32 {}
impl Reduced for f64 {}
#[cfg(feature = "half")]
impl Reduced for half::f16 {}
#[cfg(feature = "half")]
impl Reduced for half::bf16 {}
impl Float for f32 {}
impl Float for f64 {}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees_with_c<T: Element>() {
        assert_eq!(Dtype::from_code(T::CODE), Some(T::DTYPE));
        assert_eq!(T::DTYPE.code(), T::CODE);
        assert_eq!(T::DTYPE.size(), size_of::<T>());
        // SAFETY: takes any number; the text is static.
        let (size, name) = unsafe {
            (sys::sb_dtype_size(T::CODE), crate::ffi::static_text(sys::sb_dtype_name(T::CODE)))
        };
        assert_eq!((T::DTYPE.size(), T::DTYPE.name()), (size, name));
    }

    #[test]
    fn sizes_and_names_are_those_of_the_c_library() {
        agrees_with_c::<f32>();
        agrees_with_c::<f64>();
        agrees_with_c::<i32>();
        agrees_with_c::<u32>();
        agrees_with_c::<i8>();
        agrees_with_c::<u8>();
        #[cfg(feature = "half")]
        agrees_with_c::<half::f16>();
        #[cfg(feature = "half")]
        agrees_with_c::<half::bf16>();
        assert_eq!(Dtype::from_code(0), None);
    }
}
