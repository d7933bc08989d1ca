from __future__ import annotations

import numpy as np

from lance_nb.magic.demo_photos import EMBEDDING_DIM, PhotoSource


def test_the_same_seed_gives_the_same_photos() -> None:
    first = PhotoSource.seeded(3).take(50)

    assert first.equals(PhotoSource.seeded(3).take(50))
    assert not first.equals(PhotoSource.seeded(4).take(50))


def test_photos_go_on_where_the_last_ones_ended() -> None:
    source = PhotoSource.seeded(3)
    ids = source.take(30)["id"].to_pylist() + source.take(20)["id"].to_pylist()

    assert ids == list(range(1, 51))


def test_photos_have_gaps_where_real_ones_have() -> None:
    photos = PhotoSource.seeded(3).take(2000)

    for name in ("caption", "score", "tags", "meta"):
        assert 0 < photos[name].null_count < 1000, name
    assert photos["id"].null_count == photos["embedding"].null_count == 0
    assert [] in photos["tags"].to_pylist()
    photos.validate(full=True)


def test_embeddings_are_unit_vectors_and_neighbours_show_the_same() -> None:
    photos = PhotoSource.seeded(3).take(3000).combine_chunks()
    flat = photos["embedding"].combine_chunks().flatten().to_numpy()
    vectors = flat.reshape(-1, EMBEDDING_DIM)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    likeness = vectors[:200] @ vectors.T
    nearest = np.argsort(-likeness, axis=1)[:, 1:6]
    labels = np.array(photos["label"].to_pylist())
    assert (labels[nearest] == labels[:200, None]).mean() > 0.95


def test_a_caption_says_what_the_label_says() -> None:
    photos = PhotoSource.seeded(3).take(500).to_pylist()
    cats = [one["caption"] for one in photos if one["label"] == "cat" and one["caption"]]

    assert cats
    assert all("cat" in one or "tabby" in one or "kittens" in one for one in cats)
