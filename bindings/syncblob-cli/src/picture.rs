//! Draws mean images, and the filters of a convolution.

use crate::source::{Failure, Result};
use crate::values::Pass;

/// Pixels of three bytes: red, green, blue.
#[derive(Debug, PartialEq)]
pub struct Picture {
    pub width: usize,
    pub height: usize,
    pub rgb: Vec<u8>,
}

/// The order of three channels in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channels {
    /// Blue, green, red, as in OpenCV and therefore in Caffe.
    #[default]
    Bgr,
    Rgb,
}

/// Tiles of the same size: one image, or filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    pub count: usize,
    /// Always 1 or 3.
    channels: usize,
    height: usize,
    width: usize,
}

/// The maximum length of a picture's side.
const MAX_SIDE: usize = 1 << 14;

/// The maximum number of pixels, which need 24 MiB. A small archive can unpack to many more values.
const MAX_PIXELS: usize = 1 << 23;

/// Small pictures are enlarged until their longer side has about this many pixels.
const GOOD_SIDE: usize = 512;

/// The colour of a value that is not finite.
const MAGENTA: [u8; 3] = [255, 0, 255];

impl Tiles {
    /// Returns the tiles that show a tensor of this shape: four axes for filters, three for one
    /// image. Returns None for other shapes, or if height and width are both 1. If filters have
    /// neither 1 nor 3 channels, each channel is a tile.
    pub fn of(shape: &[usize]) -> Option<Self> {
        let (filters, channels, height, width) = match *shape {
            [channels, height, width] => (1, channels, height, width),
            [filters, channels, height, width] => (filters, channels, height, width),
            _ => return None,
        };
        if shape.contains(&0) || height * width == 1 {
            return None;
        }
        Some(match channels {
            1 | 3 => Self { count: filters, channels, height, width },
            _ => Self { count: filters * channels, channels: 1, height, width },
        })
    }

    pub fn at_most(self, count: usize) -> Self {
        Self { count: self.count.min(count), ..self }
    }

    fn columns(self) -> usize {
        let columns = (self.count as f64).sqrt().ceil() as usize;
        columns.clamp(1, self.count)
    }

    /// Returns the picture's width and height in values. Tiles are separated by lines as wide as a
    /// value.
    fn size(self) -> (usize, usize) {
        let (columns, rows) = (self.columns(), self.count.div_ceil(self.columns()));
        (columns * (self.width + 1) - 1, rows * (self.height + 1) - 1)
    }

    pub fn values(self) -> usize {
        self.count * self.channels * self.height * self.width
    }

    /// Draws the tiles side by side. Scales values so that the smallest is black and the largest
    /// white. One image with values from 0 to 255 is not scaled. Each value becomes a square with
    /// sides of `scale` pixels. If `scale` is None, chooses the size.
    pub fn draw(
        self,
        values: &mut impl Pass,
        channels: Channels,
        scale: Option<usize>,
    ) -> Result<Picture> {
        let (width, height) = self.size();
        let scale = scale.unwrap_or(GOOD_SIDE / width.max(height)).max(1);
        let sides = [width, height].map(|side| side.saturating_mul(scale));
        if sides[0].max(sides[1]) > MAX_SIDE || sides[0] * sides[1] > MAX_PIXELS {
            return Err(Failure::Unsupported(format!(
                "a picture of {width} x {height} values, each {scale} pixels wide, has a side of \
                 more than {MAX_SIDE} pixels, or more than {MAX_PIXELS} in all"
            )));
        }
        let mut range = Range::default();
        values.each(&mut |values| values.for_each_block(|block| range.add(block)))?;
        let mut drawing = Drawing {
            tiles: self,
            channels,
            scale,
            colour: Colour::new(range, self.count == 1),
            picture: Picture::white(sides[0], sides[1]),
            at: 0,
            spoiled: vec![false; self.height * self.width],
        };
        values.each(&mut |values| values.for_each_block(|block| drawing.add(block)))?;
        Ok(drawing.picture)
    }
}

struct Drawing {
    tiles: Tiles,
    channels: Channels,
    scale: usize,
    colour: Colour,
    picture: Picture,
    /// How many values have been drawn.
    at: usize,
    /// Whether each pixel of the current tile has a channel that is not finite. Such a pixel
    /// becomes magenta.
    spoiled: Vec<bool>,
}

impl Drawing {
    fn add(&mut self, block: &[f64]) {
        for &value in block {
            self.draw(value);
            self.at += 1;
        }
    }

    fn draw(&mut self, value: f64) {
        let Tiles { channels, height, width, .. } = self.tiles;
        let (tile, rest) =
            (self.at / (channels * height * width), self.at % (channels * height * width));
        let (channel, index) = (rest / (height * width), rest % (height * width));
        let (column, row) = (tile % self.tiles.columns(), tile / self.tiles.columns());
        let at = (column * (width + 1) + index % width, row * (height + 1) + index / width);
        let spoiled = self.spoiled[index] && channel > 0;
        self.spoiled[index] = spoiled || !value.is_finite();
        let byte = self.colour.of(value);
        match (self.spoiled[index], channels, self.channels) {
            (true, ..) => self.picture.square(at, self.scale, |pixel| *pixel = MAGENTA),
            (false, 1, _) => self.picture.square(at, self.scale, |pixel| *pixel = [byte; 3]),
            (false, _, Channels::Bgr) => {
                self.picture.square(at, self.scale, |pixel| pixel[2 - channel] = byte);
            }
            (false, _, Channels::Rgb) => {
                self.picture.square(at, self.scale, |pixel| pixel[channel] = byte);
            }
        }
    }
}

struct Range {
    min: f64,
    max: f64,
}

impl Default for Range {
    fn default() -> Self {
        Self { min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Range {
    fn add(&mut self, block: &[f64]) {
        for &value in block.iter().filter(|value| value.is_finite()) {
            (self.min, self.max) = (self.min.min(value), self.max.max(value));
        }
    }
}

struct Colour(Range);

impl Colour {
    fn new(range: Range, is_one_image: bool) -> Self {
        // An image whose values are all below 2 is scaled, because it would be almost black.
        if is_one_image && range.min >= 0.0 && (2.0..=255.0).contains(&range.max) {
            return Self(Range { min: 0.0, max: 255.0 });
        }
        Self(range)
    }

    fn of(&self, value: f64) -> u8 {
        let Range { min, max } = self.0;
        if min == max {
            return 128;
        }
        let part = (value / 2.0 - min / 2.0) / (max / 2.0 - min / 2.0);
        (part * 255.0).round() as u8
    }
}

impl Picture {
    fn white(width: usize, height: usize) -> Self {
        Self { width, height, rgb: vec![255; width * height * 3] }
    }

    /// Paints the square in column `at.0` and row `at.1`, whose sides are `scale` pixels long.
    fn square(&mut self, at: (usize, usize), scale: usize, paint: impl Fn(&mut [u8; 3])) {
        for y in at.1 * scale..(at.1 + 1) * scale {
            let start = (y * self.width + at.0 * scale) * 3;
            for pixel in self.rgb[start..start + scale * 3].chunks_exact_mut(3) {
                paint(pixel.try_into().expect("three bytes"));
            }
        }
    }

    pub fn to_png(&self) -> Result<Vec<u8>> {
        let side = |side| u32::try_from(side).expect("MAX_SIDE is less");
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, side(self.width), side(self.height));
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.rgb)?;
            writer.finish()
        });
        written.map_err(|error| Failure::Io(error.into()))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Values;

    fn tiles(shape: &[usize]) -> Tiles {
        Tiles::of(shape).unwrap()
    }

    #[test]
    fn tiles_show_planes_and_filters() {
        let counts = [
            (&[3, 32, 32][..], Some(1)),
            (&[1, 3, 32, 32], Some(1)),
            (&[96, 3, 11, 11], Some(96)),
            (&[20, 1, 5, 5], Some(20)),
            (&[50, 20, 5, 5], Some(1000)),
            (&[64, 64, 1, 1], None),
            (&[10, 500], None),
            (&[0, 3, 5, 5], None),
            (&[2, 0, 5, 5], None),
            (&[], None),
        ];
        for (shape, count) in counts {
            assert_eq!(Tiles::of(shape).map(|tiles| tiles.count), count, "{shape:?}");
        }
    }

    #[test]
    fn a_mean_image_keeps_its_values_and_blue_comes_first() {
        let values = [0.0, 10.0, 1.0, 11.0, 2.0, 255.0]; // two pixels in three planes
        let draw = |channels| tiles(&[3, 1, 2]).draw(&mut Values::F64(&values), channels, Some(1));
        let picture = draw(Channels::Bgr).unwrap();
        assert_eq!((picture.width, picture.height), (2, 1));
        assert_eq!(picture.rgb, [2, 1, 0, 255, 11, 10]);
        assert_eq!(draw(Channels::Rgb).unwrap().rgb, [0, 1, 2, 10, 11, 255]);
    }

    #[test]
    fn filters_are_stretched_to_black_and_white_in_a_grid() {
        let values = [-1.0_f32, 0.0, 1.0, 0.5, f32::NAN, -1.0];
        let picture =
            tiles(&[3, 1, 1, 2]).draw(&mut Values::F32(&values), Channels::Bgr, Some(1)).unwrap();
        // Two columns and two rows of tiles of 2 x 1, with a white line between them.
        assert_eq!((picture.width, picture.height), (5, 3));
        let grey = |at: usize| picture.rgb[at * 3..][..3].to_vec();
        assert_eq!([grey(0), grey(1), grey(2)], [[0; 3], [128; 3], [255; 3]]);
        assert_eq!([grey(3), grey(4)], [[255; 3], [191; 3]]);
        assert_eq!([grey(10), grey(11)], [[255, 0, 255], [0; 3]]);
    }

    #[test]
    fn a_value_is_drawn_as_a_square() {
        let picture =
            tiles(&[1, 2, 1]).draw(&mut Values::F32(&[0.0, 1.0]), Channels::Bgr, Some(2)).unwrap();
        assert_eq!((picture.width, picture.height), (2, 4));
        assert_eq!((&picture.rgb[..12], &picture.rgb[12..]), (&[0; 12][..], &[255; 12][..]));
        let chosen =
            tiles(&[1, 32, 32]).draw(&mut Values::F32(&[0.5; 1024]), Channels::Bgr, None).unwrap();
        assert_eq!((chosen.width, chosen.rgb[0]), (512, 128));
    }

    #[test]
    fn the_size_of_a_picture_is_limited() {
        let long =
            tiles(&[1, 1, 1 << 15]).draw(&mut Values::F32(&[0.0; 1 << 15]), Channels::Bgr, None);
        assert!(long.unwrap_err().to_string().contains("pixels"));
        let scaled =
            tiles(&[1, 1, 2]).draw(&mut Values::F32(&[0.0; 2]), Channels::Bgr, Some(usize::MAX));
        assert!(scaled.is_err());
    }

    #[test]
    fn a_png_decodes_to_the_picture() {
        let picture =
            tiles(&[3, 2, 2]).draw(&mut Values::F32(&[7.0; 12]), Channels::Bgr, Some(3)).unwrap();
        let bytes = picture.to_png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.width, info.height, rgb), (6, 6, picture.rgb));
    }
}
