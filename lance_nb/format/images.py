"""Images in Arrow columns: URIs, encoded files, and tensors of one shape.

Layout: extension types ``lance.arrow.image_uri`` (string), ``lance.arrow.encoded_image`` (binary)
and ``lance.arrow.fixed_shape_image_tensor`` (fixed-size list, its parameters are the JSON
``{"shape": [...]}``), as pylance has them.

Limits: images are decoded and encoded by Pillow, or by a function of the caller; Pillow is imported
when it is needed. An encoded image may have at most ``PIXELS_MAX`` pixels.
Source: ``lance.arrow`` of pylance 14.0.2.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs

from lance_nb.errors import ArgumentError, InvalidInputError, MissingPackageError, StorageError
from lance_nb.format.arrow_schema import register_extension_type

PIXELS_MAX = 1 << 28
_DOWNLOAD_SECONDS = 30
_SHOWN_BYTES = 30
_TEXT, _BINARY = pa.string(), pa.binary()

Decoder = Callable[[pa.Array], Any]
Encoder = Callable[[np.ndarray], Any]


class ImageURIType(pa.ExtensionType):  # type: ignore[misc]
    """The Arrow type of URIs of images: text.

    Examples:
        >>> lance_nb.ImageURIType().storage_type
        DataType(string)
    """

    def __init__(self, storage_type: pa.DataType = _TEXT) -> None:
        """Take string or large_string. Raises InvalidInputError for other storage."""
        if not (pa.types.is_string(storage_type) or pa.types.is_large_string(storage_type)):
            raise InvalidInputError(f"URIs of images are stored as text, not as {storage_type}")
        super().__init__(storage_type, "lance.arrow.image_uri")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, _: bytes) -> ImageURIType:
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[pa.ExtensionArray]:
        return ImageURIArray

    def __arrow_ext_scalar_class__(self) -> type[pa.ExtensionScalar]:
        return ImageURIScalar


class EncodedImageType(pa.ExtensionType):  # type: ignore[misc]
    """The Arrow type of images as files (PNG, JPEG, ...): bytes.

    Examples:
        >>> lance_nb.EncodedImageType().storage_type
        DataType(binary)
    """

    def __init__(self, storage_type: pa.DataType = _BINARY) -> None:
        """Take binary or large_binary. Raises InvalidInputError for other storage."""
        if not (pa.types.is_binary(storage_type) or pa.types.is_large_binary(storage_type)):
            raise InvalidInputError(f"encoded images are stored as binary, not as {storage_type}")
        super().__init__(storage_type, "lance.arrow.encoded_image")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, _: bytes) -> EncodedImageType:
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[pa.ExtensionArray]:
        return EncodedImageArray

    def __arrow_ext_scalar_class__(self) -> type[pa.ExtensionScalar]:
        return EncodedImageScalar


class FixedShapeImageTensorType(pa.ExtensionType):  # type: ignore[misc]
    """The Arrow type of images as pixels, all of one shape (height, width, channels).

    Examples:
        >>> lance_nb.FixedShapeImageTensorType(pa.uint8(), (2, 2, 3)).storage_type
        FixedSizeListType(fixed_size_list<item: uint8>[12])
    """

    def __init__(self, arrow_type: pa.DataType, shape: Iterable[int]) -> None:
        """Take the type of a pixel's values and the shape. Raises InvalidInputError."""
        self.shape = tuple(shape)
        self.arrow_type = arrow_type
        sizes = all(isinstance(size, int) and 0 <= size < 2**31 for size in self.shape)
        if not self.shape or not sizes or math.prod(self.shape) >= 2**31:
            raise InvalidInputError(f"{self.shape} is no shape of an image")
        storage = pa.list_(arrow_type, math.prod(self.shape))
        super().__init__(storage, "lance.arrow.fixed_shape_image_tensor")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps({"shape": list(self.shape)}).encode()

    @classmethod
    def __arrow_ext_deserialize__(
        cls, storage_type: pa.DataType, serialized: bytes
    ) -> FixedShapeImageTensorType:
        try:
            shape = json.loads(serialized)["shape"]
            type_ = cls(storage_type.value_type, shape)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInputError(f"not the parameters of an image tensor: {error}") from error
        if type_.storage_type.list_size != storage_type.list_size:
            raise InvalidInputError(f"images of shape {shape} do not fit {storage_type}")
        return type_

    def __arrow_ext_class__(self) -> type[pa.ExtensionArray]:
        return FixedShapeImageTensorArray

    def __arrow_ext_scalar_class__(self) -> type[pa.ExtensionScalar]:
        return FixedShapeImageTensorScalar


for _extension in (
    ImageURIType(), EncodedImageType(), FixedShapeImageTensorType(pa.uint8(), (1,)),
):  # fmt: skip
    register_extension_type(_extension)


class ImageArray(pa.ExtensionArray):  # type: ignore[misc]
    """An array of images in one of the three forms.

    Examples:
        >>> type(lance_nb.ImageArray.from_array(["file:///a.png"])).__name__
        'ImageURIArray'
    """

    @classmethod
    def from_array(cls, images: Any) -> ImageArray:
        """Return images in the form of the values: text for URIs, bytes for files, or tensors.

        Raises ArgumentError for other values, such as a list of bytes.

        >>> from lance_nb import ImageArray
        >>> ImageArray.from_array(["file:///a.png"]).to_pylist()
        ['file:///a.png']
        """
        if isinstance(images, ImageArray):
            return images
        if isinstance(images, pa.StringArray | pa.LargeStringArray):
            return _wrapped(ImageURIType(images.type), images)
        if isinstance(images, pa.BinaryArray | pa.LargeBinaryArray):
            return _wrapped(EncodedImageType(images.type), images)
        if isinstance(images, pa.FixedShapeTensorArray):
            kind = FixedShapeImageTensorType(images.type.value_type, images.type.shape)
            return _wrapped(kind, images.storage)
        if isinstance(images, Iterable):
            return ImageURIArray.from_uris(images)
        raise ArgumentError(f"an ImageArray cannot be made of {type(images).__name__}")

    def __repr__(self) -> str:
        return f"<lance_nb.{type(self).__name__} object at 0x{id(self):016x}>\n{self.to_pylist()!r}"


class ImageURIArray(ImageArray):
    """URIs of images, local or remote.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("a.png").write_bytes(b"the bytes of a picture")
        >>> uris = lance_nb.ImageURIArray.from_uris([Path("a.png").absolute()])
        >>> uris.read_uris().to_pylist()
        [b'the bytes of a picture']
    """

    @classmethod
    def from_uris(cls, uris: pa.Array | Iterable[str | Path]) -> ImageURIArray:
        """Return text, or paths, as an array of URIs.

        Args:
            uris: absolute paths or URIs.

        Raises ArgumentError.

        Examples:
            >>> len(lance_nb.ImageURIArray.from_uris(["file:///a.png", "s3://bucket/b.png"]))
            2
        """
        if isinstance(uris, pa.StringArray | pa.LargeStringArray):
            storage = uris
        elif isinstance(uris, Iterable) and not isinstance(uris, str | bytes):
            storage = pa.array([_uri_text(uri) for uri in uris], pa.string())
        else:
            raise ArgumentError(f"an ImageURIArray cannot be made of {type(uris).__name__}")
        return _wrapped(ImageURIType(storage.type), storage)

    def read_uris(self, storage_type: pa.DataType = _BINARY) -> EncodedImageArray:
        """Read every image into memory: files, ``http(s)``, and all that ``pyarrow.fs`` opens.

        This opens every URI with your own permissions, so check the URIs of a dataset that you do
        not trust first. A null URI gives null. ``storage_type``: ``pa.large_binary()`` for more
        than 2 GB. Raises StorageError that names the URI.
        """
        images = [None if uri is None else _read(uri) for uri in self.storage.to_pylist()]
        storage = pa.array(images, storage_type)
        return _wrapped(EncodedImageType(storage_type), storage)


def _uri_text(uri: object) -> str | None:
    value = uri.as_py() if isinstance(uri, pa.Scalar) else uri
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return str(value)
    text = f"the URI of an image is text or a path, not {type(value).__name__}"
    if isinstance(value, bytes | bytearray | memoryview):
        text += "; make files an array of binary: pa.array(images, pa.binary())"
    raise ArgumentError(text)


class EncodedImageArray(ImageArray):
    """Images as files of any format.

    Examples:
        >>> import numpy as np
        >>> images = lance_nb.ImageArray.from_array(pa.array([b"1", b"2"]))
        >>> ones = images.to_tensor(lambda files: np.ones((len(files), 2, 2, 3), np.uint8))
        >>> ones.to_numpy().shape
        (2, 2, 2, 3)
    """

    def to_tensor(self, decoder: Decoder | None = None) -> FixedShapeImageTensorArray:
        """Decode images of one shape into pixels.

        ``decoder``: from an array of binary to a NumPy array (image, height, width, ...) or a
        FixedShapeTensorArray; Pillow if it is left out. Raises MissingPackageError without Pillow,
        InvalidInputError for images of different shapes, nulls, or bytes that are no image.
        """
        decoded = (decoder or _decode)(self.storage)
        if not isinstance(decoded, pa.FixedShapeTensorArray):
            pixels = np.asarray(decoded)
            if not len(pixels):  # Arrow cannot make tensors of none
                kind = FixedShapeImageTensorType(
                    pa.from_numpy_dtype(pixels.dtype), pixels.shape[1:] or (1,)
                )
                return _wrapped(kind, pa.array([], kind.storage_type))
            decoded = pa.FixedShapeTensorArray.from_numpy_ndarray(pixels)
        kind = FixedShapeImageTensorType(decoded.type.value_type, decoded.type.shape)
        return _wrapped(kind, decoded.storage)

    def __repr__(self) -> str:
        first = self.storage[0].as_py() if len(self) else None
        start = "" if first is None else f", the first starts with {first[:_SHOWN_BYTES]!r}"
        return f"<lance_nb.EncodedImageArray of {len(self)} images{start}>"


class FixedShapeImageTensorArray(ImageArray):
    """Images as pixels, all of one shape.

    Examples:
        >>> import numpy as np
        >>> ones = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((1, 2, 2, 3), np.uint8))
        >>> images = lance_nb.ImageArray.from_array(ones)
        >>> images.to_numpy().shape
        (1, 2, 2, 3)
        >>> images.to_encoded(lambda pixels: pa.array([b"file"] * len(pixels))).to_pylist()
        [b'file']
    """

    def to_numpy(self, zero_copy_only: bool = False) -> np.ndarray:
        """Return the pixels as one NumPy array (image, height, width, ...).

        Args:
            zero_copy_only: no effect: nothing is copied.

        Raises InvalidInputError if an image is null.
        """
        if self.null_count:
            raise InvalidInputError("an array with nulls has no NumPy form; drop or fill them")
        values = self.storage.flatten().to_numpy(zero_copy_only=False)
        return values.reshape(len(self), *self.type.shape)  # type: ignore[no-any-return]

    def to_encoded(
        self, encoder: Encoder | None = None, storage_type: pa.DataType = _BINARY
    ) -> EncodedImageArray:
        """Encode the images.

        Args:
            encoder: from a NumPy array of all images to an array of binary; PNG by Pillow if it is
                left out.
            storage_type: ``pa.large_binary()`` for more than 2 GB.

        Raises MissingPackageError without Pillow, InvalidInputError for nulls or pixels that no PNG
        holds.
        """
        storage = (encoder or _encode)(self.to_numpy())
        if not isinstance(storage, pa.Array) or storage.type != storage_type:
            storage = pa.array(storage, storage_type)
        return _wrapped(EncodedImageType(storage_type), storage)


class ImageScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One image of an array.

    Examples:
        >>> lance_nb.ImageArray.from_array(["file:///a.png"])[0].as_py()
        'file:///a.png'
    """

    def as_py(self, *, maps_as_pydicts: str | None = None) -> Any:
        """Return the stored value: a URI, bytes, or a list of numbers.

        Args:
            maps_as_pydicts: pyarrow's argument, without effect.
        """
        return None if self.value is None else self.value.as_py()


class ImageURIScalar(ImageScalar):
    """The URI of an image.

    Examples:
        >>> lance_nb.ImageArray.from_array(["file:///a.png"])[0].as_py()
        'file:///a.png'
    """


class EncodedImageScalar(ImageScalar):
    """An image as a file.

    Examples:
        >>> lance_nb.ImageArray.from_array(pa.array([b"the bytes"]))[0].as_py()
        b'the bytes'
    """


class FixedShapeImageTensorScalar(ImageScalar):
    """An image as pixels.

    Examples:
        >>> import numpy as np
        >>> pixels = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((1, 1, 2), np.uint8))
        >>> lance_nb.ImageArray.from_array(pixels)[0].as_py()
        [1, 1]
    """


def _wrapped(kind: pa.ExtensionType, storage: pa.Array) -> ImageArray:
    wrapped: ImageArray = pa.ExtensionArray.from_storage(kind, storage)
    return wrapped


# --- reading and converting -----------------------------------------------------------------------


def _read(uri: str) -> bytes:
    try:
        if uri.startswith(("http://", "https://")):
            from urllib.request import urlopen

            with urlopen(uri, timeout=_DOWNLOAD_SECONDS) as response:  # noqa: S310 - http(s) only
                return bytes(response.read())
        filesystem, path = pyarrow.fs.FileSystem.from_uri(uri)
        with filesystem.open_input_stream(path) as stream:
            return bytes(stream.read())
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StorageError(uri, f"the image cannot be read: {error}") from error


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingPackageError(
            "decoding or encoding images without a function of yours", "Pillow", "pillow"
        ) from error
    return Image


def _decode(images: pa.Array) -> np.ndarray:
    pillow = _pillow()
    decoded = []
    for index, data in enumerate(images.to_pylist()):
        if data is None:
            raise InvalidInputError(f"image {index} is null; drop nulls before decoding")
        try:
            with pillow.open(io.BytesIO(data)) as image:
                if image.width * image.height > PIXELS_MAX:
                    raise InvalidInputError(
                        f"image {index} has {image.width} x {image.height} pixels, more than "
                        f"{PIXELS_MAX}; give a decoder that makes it smaller"
                    )
                decoded.append(np.asarray(image))
        except (OSError, SyntaxError, pillow.DecompressionBombError) as error:
            raise InvalidInputError(f"image {index} cannot be decoded: {error}") from error
    if len({image.shape for image in decoded}) > 1:
        shapes = sorted({image.shape for image in decoded})[:3]
        raise InvalidInputError(f"images of one shape make a tensor; found {shapes}")
    return np.stack(decoded) if decoded else np.empty((0, 1), np.uint8)


def _encode(images: np.ndarray) -> list[bytes]:
    pillow = _pillow()
    encoded = []
    for index, image in enumerate(images):
        with io.BytesIO() as file:
            try:
                pillow.fromarray(image).save(file, format="PNG")
            except (OSError, TypeError, ValueError, KeyError) as error:
                raise InvalidInputError(
                    f"image {index}, {image.dtype} of shape {image.shape}, cannot be encoded as "
                    f"PNG: {error}; give an encoder"
                ) from error
            encoded.append(file.getvalue())
    return encoded
