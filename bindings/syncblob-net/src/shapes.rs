use crate::net::Shape;
/// The shapes around a layer.
#[derive(Debug)]
pub(crate) struct LayerShapes {
    pub bottoms: Vec<Shape>,
    pub tops: Vec<Shape>,
    pub blobs: Vec<Shape>,
}
