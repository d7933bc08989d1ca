"""Images as URIs, encoded files and tensors."""

from __future__ import annotations

import io
import math
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ArgumentError, InvalidInputError, NotSupportedError, StorageError
from lance_nb.format import images as images_module


def test_images_take_the_form_that_fits(tmp_path: Path) -> None:
    make = lance_nb.ImageArray.from_array
    uris = make([tmp_path / "a.png", "http://x/b.png"])
    assert isinstance(uris, lance_nb.ImageURIArray)
    assert make(uris) is uris
    assert isinstance(make(pa.array([b"x"])), lance_nb.EncodedImageArray)
    assert make(pa.array([b"x"], pa.large_binary())).type.storage_type == pa.large_binary()
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    tensor = make(pa.FixedShapeTensorArray.from_numpy_ndarray(pixels))
    assert tensor.type.shape == (3, 4)
    assert tensor[1:].to_numpy().tolist() == pixels[1:].tolist()
    assert pickle.loads(pickle.dumps(tensor.type)) == tensor.type  # noqa: S301
    for wrong in (3, None, pa.scalar(3)):
        with pytest.raises(ArgumentError):
            make(wrong)


def test_uris_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"png")
    array = lance_nb.ImageURIArray.from_uris([(tmp_path / "a.png").as_uri(), None])
    assert array.read_uris(pa.large_binary()).to_pylist() == [b"png", None]
    for uri in ((tmp_path / "missing").as_uri(), "nope://x", "relative"):
        with pytest.raises(StorageError) as caught:
            lance_nb.ImageURIArray.from_uris([uri]).read_uris()
        assert caught.value.path == uri


def test_images_are_decoded_and_encoded_by_functions() -> None:
    encoded = lance_nb.ImageArray.from_array(pa.array([b"\1\2", b"\3\4"]))

    def decode(images: pa.Array) -> np.ndarray:
        return np.array([list(one) for one in images.to_pylist()], np.uint8)

    tensor = encoded.to_tensor(decode)
    assert tensor.to_numpy().tolist() == [[1, 2], [3, 4]]
    back = tensor.to_encoded(lambda all_of_them: [one.tobytes() for one in all_of_them])
    assert back.to_pylist() == [b"\1\2", b"\3\4"]
    assert "2 images" in repr(encoded)
    assert "0 images" in repr(encoded[:0])


def picture(mode: str, kind: str = "PNG", size: tuple[int, int] = (3, 2)) -> bytes:
    """A picture file, of one colour."""
    from PIL import Image

    with io.BytesIO() as file:
        Image.new(mode, size, 1).save(file, format=kind)
        return file.getvalue()


@pytest.mark.parametrize(("mode", "kind", "shape", "dtype"), [
    ("L", "PNG", (2, 3), "uint8"), ("RGB", "PNG", (2, 3, 3), "uint8"),
    ("RGBA", "PNG", (2, 3, 4), "uint8"), ("I;16", "PNG", (2, 3), "uint16"),
    ("P", "PNG", (2, 3), "uint8"), ("RGB", "JPEG", (2, 3, 3), "uint8"),
])  # fmt: skip
def test_pictures_of_every_mode_are_decoded_and_encoded_by_the_real_pillow(
    mode: str, kind: str, shape: tuple[int, ...], dtype: str
) -> None:
    pytest.importorskip("PIL")
    encoded = lance_nb.ImageArray.from_array(pa.array([picture(mode, kind)] * 2))
    tensor = encoded.to_tensor()
    assert (tensor.type.shape, tensor.to_numpy().dtype.name) == (shape, dtype)
    again = tensor.to_encoded(storage_type=pa.large_binary())
    assert again.type.storage_type == pa.large_binary()
    assert again.to_tensor().to_numpy().tolist() == tensor.to_numpy().tolist()


def test_what_pillow_cannot_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    make = lance_nb.ImageArray.from_array
    whole = picture("RGB")
    for data in (b"", b"garbage", whole[:40]):
        with pytest.raises(InvalidInputError, match="image 1 cannot be decoded"):
            make(pa.array([whole, data])).to_tensor()
    with pytest.raises(InvalidInputError, match="image 1 is null"):
        make(pa.array([whole, None])).to_tensor()
    with pytest.raises(InvalidInputError, match="images of one shape"):
        make(pa.array([whole, picture("RGB", size=(5, 5))])).to_tensor()
    monkeypatch.setattr(images_module, "PIXELS_MAX", 5)
    with pytest.raises(InvalidInputError, match="image 0 has 3 x 2 pixels"):
        make(pa.array([whole])).to_tensor()


@pytest.mark.parametrize("pixels", [
    np.zeros((1, 2, 3), np.float32), np.zeros((1, 2, 3, 5), np.uint8), np.zeros((1, 2), np.int64),
], ids=["floats", "five channels", "wide numbers"])  # fmt: skip
def test_pixels_that_no_png_holds_are_refused(pixels: np.ndarray) -> None:
    pytest.importorskip("PIL")
    tensor = lance_nb.ImageArray.from_array(pa.FixedShapeTensorArray.from_numpy_ndarray(pixels))
    with pytest.raises(InvalidInputError, match=r"image 0, .* cannot be encoded as PNG.*encoder"):
        tensor.to_encoded()


def test_without_pillow_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(NotSupportedError, match="pip install pillow"):
        lance_nb.ImageArray.from_array(pa.array([b"x"])).to_tensor()


@pytest.mark.parametrize(
    "make",
    [
        lambda: lance_nb.ImageURIType(pa.binary()),
        lambda: lance_nb.EncodedImageType(pa.string()),
        lambda: lance_nb.FixedShapeImageTensorType(pa.uint8(), ()),
        lambda: lance_nb.FixedShapeImageTensorType(pa.uint8(), (2**20, 2**20)),
        lambda: lance_nb.FixedShapeImageTensorType(pa.uint8(), ("a",)),
        lambda: lance_nb.BlobType.__arrow_ext_deserialize__(pa.string(), b""),
        lambda: lance_nb.BFloat16Type.__arrow_ext_deserialize__(pa.binary(3), b""),
        *(
            lambda data=data: lance_nb.FixedShapeImageTensorType.__arrow_ext_deserialize__(
                pa.list_(pa.uint8(), 4), data
            )
            for data in (b"", b"{}", b"[]", b'{"shape": [5]}', b'{"shape": 3}')
        ),
    ],
)
def test_types_that_do_not_fit_are_refused(make: Any) -> None:
    with pytest.raises(InvalidInputError):
        make()


class Pillow:
    """What is used of Pillow: bytes are width, height and one value for all pixels."""

    class DecompressionBombError(Exception):
        """Raised for an image that would be too large."""

    class Picture:
        def __init__(self, width: int, height: int, value: int) -> None:
            self.width, self.height, self.value = width, height, value

        def __enter__(self) -> Pillow.Picture:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.full((self.height, self.width), self.value, np.uint8)

        def save(self, file: Any, format: str) -> None:
            assert format == "PNG"
            file.write(bytes([self.width, self.height, self.value]))

    @classmethod
    def open(cls, file: Any) -> Pillow.Picture:
        data = file.read()
        if data == b"bomb":
            raise cls.DecompressionBombError("too large")
        if len(data) != 3:
            raise OSError("cannot identify image file")
        return cls.Picture(*data)

    @classmethod
    def fromarray(cls, pixels: np.ndarray) -> Pillow.Picture:
        return cls.Picture(pixels.shape[1], pixels.shape[0], int(pixels.flat[0]))


@pytest.fixture
def pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", SimpleNamespace(Image=Pillow))


def encoded_images(*data: bytes | None) -> Any:
    return lance_nb.ImageArray.from_array(pa.array(data, pa.binary()))


@pytest.mark.usefixtures("pillow")
def test_images_are_decoded_and_encoded_by_pillow() -> None:
    images = encoded_images(b"\x02\x03\x07", b"\x02\x03\x09")
    tensor = images.to_tensor()
    assert tensor.type.shape == (3, 2)
    assert tensor.to_numpy().tolist() == [[[7] * 2] * 3, [[9] * 2] * 3]
    assert tensor.to_encoded().to_pylist() == images.to_pylist()
    large = tensor.to_encoded(storage_type=pa.large_binary())
    assert large.type.storage_type == pa.large_binary()
    assert encoded_images().to_tensor().type.shape == (1,)
    assert len(encoded_images().to_tensor()) == 0


@pytest.mark.usefixtures("pillow")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([b"\x01\x01\x01", None], "image 1 is null"),
        ([b"no image"], "image 0 cannot be decoded: cannot identify"),
        ([b"\x01\x01\x01", b"bomb"], "image 1 cannot be decoded: too large"),
        (
            [b"\x01\x02\x01", b"\x02\x01\x01"],
            r"one shape make a tensor; found \[\(1, 2\), \(2, 1\)",
        ),
    ],
)
def test_images_that_make_no_tensor_are_refused(data: list[bytes | None], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        encoded_images(*data).to_tensor()


@pytest.mark.usefixtures("pillow")
def test_images_have_at_most_so_many_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images_module, "PIXELS_MAX", 6)
    encoded_images(b"\x02\x03\x07").to_tensor()
    with pytest.raises(InvalidInputError, match="image 0 has 2 x 4 pixels, more than 6"):
        encoded_images(b"\x02\x04\x07").to_tensor()


def test_tensors_with_nulls_have_no_numpy_form() -> None:
    kind = lance_nb.FixedShapeImageTensorType(pa.uint8(), (2,))
    made = pa.ExtensionArray.from_storage(kind, pa.array([[1, 2], None], pa.list_(pa.uint8(), 2)))
    with pytest.raises(InvalidInputError, match="nulls"):
        made.to_numpy()
    assert [one.as_py() for one in made] == [[1, 2], None]


@pytest.mark.parametrize("shape", [(2**31 - 1,), (1, 2, 3), (0, 4)])
def test_shapes_of_images(shape: tuple[int, ...]) -> None:
    made = lance_nb.FixedShapeImageTensorType(pa.uint8(), shape)
    assert made.shape == shape
    assert made.storage_type.list_size == math.prod(shape)
    for wrong in ((2**31,), (-1, 2), (2**16, 2**15)):
        with pytest.raises(InvalidInputError, match="no shape of an image"):
            lance_nb.FixedShapeImageTensorType(pa.uint8(), wrong)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_are_uris_of_images(kind: pa.DataType) -> None:
    texts = pa.array(["file:///a", None], kind)
    for made in (lance_nb.ImageArray.from_array(texts), lance_nb.ImageURIArray.from_uris(texts)):
        assert isinstance(made, lance_nb.ImageURIArray)
        assert made.type.storage_type == kind
        assert [one.as_py() for one in made] == ["file:///a", None]
        assert "['file:///a', None]" in repr(made)
    for wrong in ("file:///a", b"x", 3):
        with pytest.raises(ArgumentError, match="ImageURIArray cannot be made of"):
            lance_nb.ImageURIArray.from_uris(wrong)


@pytest.mark.parametrize("wrong", [b"x", bytearray(b"x"), memoryview(b"x"), pa.scalar(b"x")])
def test_files_are_not_taken_for_uris(wrong: object) -> None:
    for make in (lance_nb.ImageArray.from_array, lance_nb.ImageURIArray.from_uris):
        with pytest.raises(ArgumentError, match=r"is text or a path, not .*pa.binary\(\)"):
            make(["file:///a", wrong])
        with pytest.raises(ArgumentError, match=r"is text or a path, not int$"):
            make([1])
        assert make([Path("/a.png"), "b", None]).to_pylist() == ["/a.png", "b", None]
        chunked = pa.chunked_array([["a"], ["b", None]])
        assert make(chunked).to_pylist() == ["a", "b", None]


def test_what_is_shown_of_images_is_the_beginning_of_the_first() -> None:
    assert repr(encoded_images(b"x" * 31, b"y")) == (
        f"<lance_nb.EncodedImageArray of 2 images, the first starts with {b'x' * 30!r}>"
    )
    assert repr(encoded_images(None, b"y")) == "<lance_nb.EncodedImageArray of 2 images>"


def test_images_are_read_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def urlopen(uri: str, timeout: float) -> Any:
        asked.append((uri, timeout))
        if "missing" in uri:
            raise OSError("404")
        return io.BytesIO(b"png")

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    array = lance_nb.ImageURIArray.from_uris(["http://x/a", None, "https://x/b"])
    assert array.read_uris().to_pylist() == [b"png", None, b"png"]
    assert asked == [("http://x/a", 30), ("https://x/b", 30)]
    with pytest.raises(StorageError, match="404"):
        lance_nb.ImageURIArray.from_uris(["http://x/missing"]).read_uris()


def test_parameters_that_are_nested_too_deeply_are_none() -> None:
    kind = lance_nb.FixedShapeImageTensorType(pa.uint8(), (1,))
    with pytest.raises(InvalidInputError, match="not the parameters of an image tensor"):
        kind.__arrow_ext_deserialize__(kind.storage_type, b'{"shape":' + b"[" * 100_000)
