/// The host provides it.
pub fn is_open() -> bool {
    true
}
