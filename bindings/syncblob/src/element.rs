use std::fmt;
use std::str::FromStr;

use syncblob_sys as sys;

use crate::any::BlobAny;
use crate::dtypes::for_each_dtype;
use crate::ffi::by_name;
use crate::{Blob, Error};

macro_rules! dtype {
    ([] $(
        $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
        $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
    )*) => {
        /// The type of a blob's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
        #[non_exhaustive]
        pub enum Dtype {
            $(
                #[doc = concat!("`", $text, "`")]
                $name,
            )*
        }

        impl Dtype {
            /// Every element type.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            pub(crate) fn code(self) -> i32 {
                match self {
                    $(Self::$name => sys::$code,)*
                }
            }

            /// Returns the size of one element in bytes.
            pub fn size(self) -> usize {
                match self {
                    $(Self::$name => $size,)*
                }
            }

            /// Returns the short name, such as `"f32"`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Returns NumPy's name, such as `"float32"`. `"bfloat16"` is PyTorch's name.
            pub fn numpy_name(self) -> &'static str {
                match self {
                    $(Self::$name => $numpy,)*
                }
            }

            /// Returns the name of the type in the header of a little-endian NumPy file, or `None`
            /// if NumPy has no such type.
            pub fn typestr(self) -> Option<&'static str> {
                let text = match self {
                    $(Self::$name => $typestr,)*
                };
                (!text.is_empty()).then_some(text)
            }

            /// Returns the smallest float type, `f32` or `f64`, that holds every value of this type
            /// exactly. Returns `None` if neither type does.
            pub fn exact_float(self) -> Option<Self> {
                match self {
                    $(Self::$name => exact_float!($kind, $size),)*
                }
            }
        }
    };
}

macro_rules! exact_float {
    (half, $size:literal) => {
        Some(Self::F32)
    };
    (float, $size:literal) => {
        Some(if $size == 4 { Self::F32 } else { Self::F64 })
    };
    (integer, $size:literal) => {
        match $size {
            1 | 2 => Some(Self::F32),
            4 => Some(Self::F64),
            _ => None,
        }
    };
}

for_each_dtype!(dtype);

impl Dtype {
    /// Returns the type with the number `code`, or `None` for a type of a newer library.
    pub(crate) fn from_code(code: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.code() == code)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Parses the short name.
impl FromStr for Dtype {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        by_name(name, "element type", Self::ALL)
    }
}

pub(crate) mod sealed {
    /// The C library's number for the element type.
    pub trait Sealed {
        const CODE: i32;
    }
}

/// A type that a [`Blob`] can hold.
///
/// The trait is sealed: only the C library's element types implement the trait. For each of them,
/// any bytes are a valid value.
pub trait Element:
    sealed::Sealed + Copy + Send + Sync + PartialEq + fmt::Debug + Sized + 'static
{
    /// The element type, as a [`Dtype`].
    const DTYPE: Dtype;

    /// Whether [`word`](Element::word) returns a word for at least one value.
    #[doc(hidden)]
    const HAS_WORDS: bool;

    /// Returns the word, such as "NaN", for a value that JSON cannot represent as a number.
    #[doc(hidden)]
    fn word(&self) -> Option<&'static str>;
    #[doc(hidden)]
    fn from_word(word: &str) -> Option<Self>;
    /// Returns the nearest `f64`.
    #[doc(hidden)]
    fn to_f64(self) -> f64;
    /// Returns an integer's exact value, or `None` for a float.
    #[doc(hidden)]
    fn to_integer(self) -> Option<i128>;
    #[doc(hidden)]
    fn wrap(blob: Blob<Self>) -> BlobAny;
    #[doc(hidden)]
    fn unwrap(any: BlobAny) -> Result<Blob<Self>, BlobAny>;
    #[doc(hidden)]
    fn unwrap_ref(any: &BlobAny) -> Option<&Blob<Self>>;
    #[doc(hidden)]
    fn unwrap_mut(any: &mut BlobAny) -> Option<&mut Blob<Self>>;
}

/// An [`Element`] into which values of Caffe's files can be read: a float or an integer. With the
/// feature `half`, also `half::f16`, but only for values that NVCaffe stored as halves.
pub trait Readable: Element {}

/// An [`Element`] whose values communicators can combine: `f32`, `f64` or, with the feature `half`
/// and an engine that supports the type, `half::f16` or `half::bf16`.
pub trait Reduced: Element {}

/// An [`Element`] that has arithmetic and that Caffe's files can store: `f32` or `f64`.
pub trait Float: Readable + Reduced {}

/// Implements the words of [`Element`] for integers and halves, which need none: serde writes a
/// half as an integer with the same bits.
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

#[cfg(feature = "half")]
macro_rules! half {
    () => {
        no_words!();

        fn to_f64(self) -> f64 {
            self.into()
        }

        fn to_integer(self) -> Option<i128> {
            None
        }
    };
}

macro_rules! integer {
    () => {
        no_words!();

        fn to_f64(self) -> f64 {
            self as f64
        }

        fn to_integer(self) -> Option<i128> {
            Some(self.into())
        }
    };
}

macro_rules! float {
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

        fn to_f64(self) -> f64 {
            self.into()
        }

        fn to_integer(self) -> Option<i128> {
            None
        }
    };
}

macro_rules! elements {
    ([] $(
        $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
        $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
    )*) => {$(
        #[cfg($when)]
        impl sealed::Sealed for $type {
            const CODE: i32 = sys::$code;
        }

        #[cfg($when)]
        impl Element for $type {
            const DTYPE: Dtype = Dtype::$name;

            $kind!();

            fn wrap(blob: Blob<Self>) -> BlobAny {
                BlobAny::$name(blob)
            }

            fn unwrap(any: BlobAny) -> Result<Blob<Self>, BlobAny> {
                match any {
                    BlobAny::$name(blob) => Ok(blob),
                    other => Err(other),
                }
            }

            fn unwrap_ref(any: &BlobAny) -> Option<&Blob<Self>> {
                match any {
                    BlobAny::$name(blob) => Some(blob),
                    _ => None,
                }
            }

            fn unwrap_mut(any: &mut BlobAny) -> Option<&mut Blob<Self>> {
                match any {
                    BlobAny::$name(blob) => Some(blob),
                    _ => None,
                }
            }
        }

        $(
            #[cfg($when)]
            impl $can for $type {}
        )*
    )*};
}

for_each_dtype!(elements);

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! agree {
        ([] $(
            $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
            $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
        )*) => {$(
            #[cfg($when)]
            assert_eq!((<$type>::DTYPE, size_of::<$type>()), (Dtype::$name, $size));
        )*};
    }

    /// The C library may have a type that `Dtype` lacks, so the test compares 1000 codes.
    #[test]
    fn the_types_are_those_of_the_c_library() {
        for code in 0..1000 {
            // SAFETY: both functions take any number. The text is static.
            let (size, name) = unsafe {
                (sys::sb_dtype_size(code), crate::ffi::static_text(sys::sb_dtype_name(code)))
            };
            let found = Dtype::from_code(code);
            assert_eq!(
                found.map_or((0, "unknown"), |dtype| (dtype.size(), dtype.name())),
                (size, name)
            );
        }
        for_each_dtype!(agree);
    }

    #[test]
    fn the_smaller_float_that_holds_all_values() {
        let exact = |dtype: Dtype| dtype.exact_float();
        assert_eq!([Dtype::F32, Dtype::Bf16, Dtype::U8].map(exact), [Some(Dtype::F32); 3]);
        assert_eq!([Dtype::F64, Dtype::I32, Dtype::U32].map(exact), [Some(Dtype::F64); 3]);
        assert_eq!(exact(Dtype::I64), None);
    }
}
