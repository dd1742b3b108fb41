"""Normalisation by hand; crops and flips against one image at a time."""

import numpy as np
import pytest
import torch

from fedlogit.engine.transforms import crop_and_flip, draw_crops, normalise, to_nchw


def crop_flip(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return crop_and_flip(images, draw_crops(len(images), generator))


def test_channels_move_to_the_front():
    images = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)
    tensor = to_nchw(images)
    assert tensor.shape == (2, 5, 3, 4)
    assert tensor[1, 4, 2, 3] == images[1, 2, 3, 4]


def test_normalisation_by_hand():
    # 51 / 255 = 0.2: (0.2 - 0.5) / 0.25 = -1.2; 255 / 255 = 1: (1 - 0.5) / 0.25 = 2
    out = normalise(torch.tensor([51, 255], dtype=torch.uint8).view(1, 1, 1, 2), [0.5], [0.25])
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.flatten(), torch.tensor([-1.2, 2.0]))


def test_each_channel_is_normalised_by_its_own_numbers():
    images = torch.full((1, 3, 1, 1), 102, dtype=torch.uint8)  # 0.4
    out = normalise(images, [0.4, 0.3, 0.2], [1, 0.5, 0.1])
    torch.testing.assert_close(out.flatten(), torch.tensor([0, 0.2, 2.0]), atol=1e-6, rtol=0)


@pytest.fixture(scope="module")
def images():
    """No two pixels of a channel have the same value, and none is 0, the colour of the border."""
    numbers = np.random.default_rng(0)
    return torch.from_numpy(
        np.stack([numbers.permutation(255)[:196] + 1 for _ in range(1200)])
        .astype(np.uint8)
        .reshape(600, 2, 14, 14)
    )


def one(image, top, left, flip):
    """Pad one image by 4, cut 14 x 14 out, mirror it; written with plain slices."""
    padded = np.zeros((2, 22, 22), np.uint8)
    padded[:, 4:18, 4:18] = image
    crop = padded[:, top : top + 14, left : left + 14]
    return crop[:, :, ::-1] if flip else crop


def find(image, crop):
    """Return the only (top, left, flip) that makes `crop` of `image`."""
    found = [
        (top, left, flip)
        for top in range(9)
        for left in range(9)
        for flip in (False, True)
        if (one(image, top, left, flip) == crop).all()
    ]
    assert len(found) == 1
    return found[0]


def test_every_image_is_one_crop_of_itself_and_all_offsets_occur(images):
    crops = crop_flip(images, torch.Generator().manual_seed(0))
    assert crops.dtype == torch.uint8
    found = [find(i, c) for i, c in zip(images.numpy(), crops.numpy(), strict=True)]
    assert {top for top, _, _ in found} == set(range(9))
    assert {left for _, left, _ in found} == set(range(9))
    # 600 fair coins: 300 +- 3 standard deviations of 12.2, whose seed is fixed
    assert 264 <= sum(flip for _, _, flip in found) <= 336
    # Rows, columns and flips are drawn apart: of 162 combinations most occur in 600 draws.
    assert len(set(found)) > 140


def test_crops_repeat_with_the_generator_and_leave_the_images_alone(images):
    before = images.clone()
    first = crop_flip(images, torch.Generator().manual_seed(1))
    assert torch.equal(first, crop_flip(images, torch.Generator().manual_seed(1)))
    assert not torch.equal(first, crop_flip(images, torch.Generator().manual_seed(2)))
    assert torch.equal(images, before)


def test_several_draws_at_once_crop_as_each_alone(images):
    """A stage's crops are drawn before it, and several clients' images cropped in one call."""
    first, second = images[:3], images[3:10]
    alone = [torch.Generator().manual_seed(seed) for seed in (1, 2)]
    apart = [crop_flip(x, g) for x, g in zip((first, second), alone, strict=True)]
    drawn = [draw_crops(n, torch.Generator().manual_seed(s)) for n, s in ((3, 1), (7, 2))]
    assert torch.equal(crop_and_flip(images[:10], torch.cat(drawn, 1)), torch.cat(apart))


def test_the_global_generator_is_not_used(images):
    torch.manual_seed(0)
    state = torch.get_rng_state()
    crop_flip(images, torch.Generator().manual_seed(1))
    assert torch.equal(torch.get_rng_state(), state)
