"""How `pickle` and `copy` take blobs and models."""

import copyreg
from typing import Any, Optional

from ._syncblob import Blob, Model, load

_Values = Optional[Any]  # a NumPy array; None: there never were any


def _blob_of(shape: Optional[tuple[int, ...]], dtype: str, device: str, data: _Values,
             diff: _Values) -> Blob:
    blob = Blob(shape, dtype, device)
    if data is not None:
        blob.data[...] = data
    if diff is not None:
        blob.diff[...] = diff
    return blob


def _reduce_blob(blob: Blob) -> tuple[Any, ...]:
    # A scalar has an element; a blob that never had a shape has none.
    shape = blob.shape if blob.ndim or blob.size else None
    values = (blob.data if blob.data_head != "UNINITIALIZED" else None,
              blob.diff if blob.diff_head != "UNINITIALIZED" else None)
    return _blob_of, (shape, blob.dtype, blob.device, *values)


def _model_of(content: bytes, format: str) -> Model:
    return load(content, format=format)


def _reduce_model(model: Model) -> tuple[Any, ...]:
    return _model_of, (model.to_bytes(), model.format)


def register() -> None:
    """Tells `pickle` and `copy`."""
    copyreg.pickle(Blob, _reduce_blob)
    copyreg.pickle(Model, _reduce_model)
