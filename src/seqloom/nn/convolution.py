"""Images to feature maps: residual convolutions, and patches."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GROUPS = 8
"""Channels are normalised in so many groups, image by image: what comes out for one image never
depends on the others of its batch."""
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
"""Of the colours of photographs, the usual figures."""


class Crop(nn.Module):
    """Bytes to numbers around zero, cut to a square: (B, C, height, width) -> (B, C, N, N)

    In training the square is anywhere in the image and may be mirrored, so that no image is ever
    seen twice; otherwise it is the middle one. Every shape is known beforehand, as a recorded
    step needs it.

    zoom:  in training, the least share of an image's side that is looked at; 1 leaves sizes alone
    light: in training, by how much of itself brightness and contrast may change
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, size: int, zoom: float = 1.0, light: float = 0.0) -> None:
        super().__init__()
        self.size = size
        self.zoom = zoom
        self.light = light
        for name, colours in (("mean", MEAN), ("deviation", DEVIATION)):
            self.register_buffer(name, torch.tensor(colours).view(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        room = [side - self.size for side in images.shape[-2:]]
        if self.training:
            cut = self._zoomed(images) if self.zoom < 1 else self._anywhere(images, room)
            images = self._lit(cut.to(self.mean.dtype)) if self.light else cut
        else:
            top, left = (extra // 2 for extra in room)
            images = images[..., top : top + self.size, left : left + self.size]
        return (images.to(self.mean.dtype) / 255 - self.mean) / self.deviation

    def _zoomed(self, images: Tensor) -> Tensor:
        """A square of any size from the least up to the whole image, anywhere, scaled to fit."""
        count = len(images)
        share = torch.empty(count, 1, device=images.device).uniform_(self.zoom, 1)
        mirror = (torch.rand(count, 1, device=images.device) < 0.5).to(share.dtype) * -2 + 1
        middle = (torch.rand(count, 2, device=images.device) * 2 - 1) * (1 - share)
        nothing = torch.zeros_like(share)
        # Where a place of the cut lies in the image, both from -1 to 1: (B, 2, 3)
        rows = [share * mirror, nothing, middle[:, :1], nothing, share, middle[:, 1:]]
        where = torch.cat(rows, dim=1).view(count, 2, 3)
        shape = [count, images.shape[1], self.size, self.size]
        with torch.autocast(images.device.type, enabled=False):  # bf16 cannot tell pixels apart
            grid = F.affine_grid(where, shape, align_corners=False)
            return F.grid_sample(
                images.to(grid.dtype), grid, padding_mode="border", align_corners=False
            )

    def _lit(self, images: Tensor) -> Tensor:
        """Brighter or darker, and with more or less contrast; bytes stay within their range."""
        count = len(images)
        drawn = torch.empty(2, count, 1, 1, 1, device=images.device)
        brightness, contrast = drawn.uniform_(1 - self.light, 1 + self.light)
        mean = images.mean(dim=(1, 2, 3), keepdim=True)
        return (mean * brightness + (images - mean) * contrast).clamp(0, 255)

    def _anywhere(self, images: Tensor, room: list[int]) -> Tensor:
        count, device = len(images), images.device
        along = torch.arange(self.size, device=device)
        top, left = (torch.randint(extra + 1, (count, 1), device=device) for extra in room)
        mirrored = torch.rand(count, 1, device=device) < 0.5
        rows = top + along  # (B, N)
        columns = left + torch.where(mirrored, self.size - 1 - along, along)
        each = torch.arange(count, device=device)[:, None, None]
        # Indices on both sides of a slice bring its dimension to the end: (B, N, N, C).
        cut = images[each, :, rows[:, :, None], columns[:, None, :]]
        # In plain order: with colours last in memory, torch 2.13 crashes in some gradients on CPUs.
        return cut.permute(0, 3, 1, 2).contiguous()


class ResidualBlock(nn.Module):
    """x + two 3 x 3 convolutions of it; with a stride, half as high and wide.

    (B, C, N, N) -> (B, C', N / stride, N / stride)
    """

    def __init__(self, channels: int, wanted: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, wanted, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(wanted, wanted, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.GroupNorm(GROUPS, channels), nn.GroupNorm(GROUPS, wanted)])
        plain = channels == wanted and stride == 1
        self.around = nn.Identity() if plain else nn.Conv2d(channels, wanted, 1, stride, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        bent = F.relu(self.norms[0](image))
        inner = self.first(bent)
        return self.around(image) + self.second(F.relu(self.norms[1](inner)))


class ResidualNetwork(nn.Module):
    """Stages of residual blocks, each with more channels on a coarser grid than the one before.

    (B, 3, N, N) -> (B, C, N / 2^stages, N / 2^stages)
    """

    def __init__(self, channels: list[int], blocks: int) -> None:
        """channels: of each stage; blocks: in each of them"""
        super().__init__()
        self.stem = nn.Conv2d(3, channels[0], 3, 1, 1, bias=False)
        stages = []
        width = channels[0]
        for wanted in channels:
            for number in range(blocks):
                stages.append(ResidualBlock(width, wanted, stride=2 if number == 0 else 1))
                width = wanted
        self.stages = nn.Sequential(*stages)
        self.norm = nn.GroupNorm(GROUPS, width)
        self.width = width

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.norm(self.stages(self.stem(images))))


class Patches(nn.Module):
    """An image cut into squares, each mapped to a vector: (B, 3, N, N) -> (B, G, D)

    The G squares stand in reading order, with a learned vector for the place of each.
    """

    def __init__(self, size: int, patch: int, width: int) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(torch.randn((size // patch) ** 2, width) * 0.02)

    def forward(self, images: Tensor) -> Tensor:
        return self.cut(images).flatten(2).transpose(1, 2) + self.places
