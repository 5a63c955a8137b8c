"""Layers that turn images into feature maps: cropping, residual convolutions, and patches."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GROUPS = 8
"""Number of channel groups in GroupNorm. GroupNorm normalises each image separately, so that the
features of an image do not depend on the other images of its batch."""
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
"""`MEAN` and `DEVIATION`: the usual mean and standard deviation of the three ImageNet colour
channels, for values from 0 to 1."""


class Crop(nn.Module):
    """Crops a square and normalises the bytes to floats: (B, 3, height, width) -> (B, 3, N, N)

    In training, the crop is at a random position. In evaluation mode, it is the centre of the
    image, and `zoom`, `light` and `mirror` have no effect. The output shape does not depend on the
    data, because a training step that is captured as a CUDA graph needs fixed shapes.

    size:   N, side of the result in pixels
    zoom:   smallest size of a training crop, as a fraction of the image's height and width. If
            `zoom` is below 1, a size between `zoom` and 1 is drawn for each crop, and the crop is
            resized to (N, N). If `zoom` is 1, a crop is N x N pixels and is not resized. Default: 1
    light:  maximum relative change of brightness and contrast in training. Default: 0
    mirror: mirror images with probability ½ in training. Default: True
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self, size: int, zoom: float = 1.0, light: float = 0.0, mirror: bool = True
    ) -> None:
        super().__init__()
        self.size = size
        self.zoom = zoom
        self.light = light
        self.mirror = mirror
        for name, colours in (("mean", MEAN), ("deviation", DEVIATION)):
            self.register_buffer(name, torch.tensor(colours).view(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        margins = [side - self.size for side in images.shape[-2:]]
        if self.training:
            cropped = (
                self._random_resized_crop(images)
                if self.zoom < 1
                else self._random_crop(images, margins)
            )
            images = self._jitter(cropped.to(self.mean.dtype)) if self.light else cropped
        else:
            top, left = (margin // 2 for margin in margins)
            images = images[..., top : top + self.size, left : left + self.size]
        return (images.to(self.mean.dtype) / 255 - self.mean) / self.deviation

    def _random_resized_crop(self, images: Tensor) -> Tensor:
        """Crop at a random size and position, and resize to (N, N).

        If `mirror` is set, also mirror each crop with probability ½.
        """
        count = len(images)
        share = torch.empty(count, 1, device=images.device).uniform_(self.zoom, 1)
        mirror = self._draw_mirrored(count, images.device).to(share.dtype) * -2 + 1
        centre = (torch.rand(count, 2, device=images.device) * 2 - 1) * (1 - share)
        zero = torch.zeros_like(share)
        # Affine maps from crop to image coordinates, both from -1 to 1: (B, 2, 3)
        entries = [share * mirror, zero, centre[:, :1], zero, share, centre[:, 1:]]
        affine = torch.cat(entries, dim=1).view(count, 2, 3)
        shape = [count, images.shape[1], self.size, self.size]
        # bf16 has too few significant bits for pixel coordinates.
        with torch.autocast(images.device.type, enabled=False):
            grid = F.affine_grid(affine, shape, align_corners=False)
            return F.grid_sample(
                images.to(grid.dtype), grid, padding_mode="border", align_corners=False
            )

    def _draw_mirrored(self, count: int, device: torch.device) -> Tensor:
        """Choose at random which images to mirror: (count, 1), True for an image to mirror."""
        return torch.rand(count, 1, device=device) < (0.5 if self.mirror else 0.0)

    def _jitter(self, images: Tensor) -> Tensor:
        """Change brightness and contrast at random. Values stay between 0 and 255."""
        count = len(images)
        factors = torch.empty(2, count, 1, 1, 1, device=images.device)
        brightness, contrast = factors.uniform_(1 - self.light, 1 + self.light)
        mean = images.mean(dim=(1, 2, 3), keepdim=True)
        return (mean * brightness + (images - mean) * contrast).clamp(0, 255)

    def _random_crop(self, images: Tensor, margins: list[int]) -> Tensor:
        count, device = len(images), images.device
        offsets = torch.arange(self.size, device=device)
        top, left = (torch.randint(margin + 1, (count, 1), device=device) for margin in margins)
        is_mirrored = self._draw_mirrored(count, device)
        rows = top + offsets  # (B, N)
        columns = left + torch.where(is_mirrored, self.size - 1 - offsets, offsets)
        image_index = torch.arange(count, device=device)[:, None, None]
        # torch moves the dimension of a slice between index tensors to the end: (B, N, N, C).
        cropped = images[image_index, :, rows[:, :, None], columns[:, None, :]]
        # Contiguous: with channels last in memory, torch 2.13 crashes in some gradients on a CPU.
        return cropped.permute(0, 3, 1, 2).contiguous()


class ResidualBlock(nn.Module):
    """x + f(x), where f is two 3 x 3 convolutions with pre-activation (He et al. 2016).

    (B, C, N, N) -> (B, C', N / stride, N / stride). If the shape changes, a 1 x 1 convolution maps
    x to the new shape before the sum.
    """

    def __init__(self, channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, out_channels, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(
            [nn.GroupNorm(GROUPS, channels), nn.GroupNorm(GROUPS, out_channels)]
        )
        same_shape = channels == out_channels and stride == 1
        self.shortcut = (
            nn.Identity()
            if same_shape
            else nn.Conv2d(channels, out_channels, 1, stride, bias=False)
        )

    def forward(self, image: Tensor) -> Tensor:
        inner = self.first(F.relu(self.norms[0](image)))
        return self.shortcut(image) + self.second(F.relu(self.norms[1](inner)))


class ResidualNetwork(nn.Module):
    """Stages of residual blocks. Each stage halves height and width.

    (B, 3, N, N) -> (B, C, N / 2^stages, N / 2^stages)

    channels: number of channels of each stage
    blocks:   number of blocks in each stage
    """

    def __init__(self, channels: list[int], blocks: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels[0], 3, 1, 1, bias=False)
        stages = []
        width = channels[0]
        for stage_channels in channels:
            for block in range(blocks):
                stages.append(ResidualBlock(width, stage_channels, stride=2 if block == 0 else 1))
                width = stage_channels
        self.stages = nn.Sequential(*stages)
        self.norm = nn.GroupNorm(GROUPS, width)
        self.width = width
        self.stage_count = len(channels)

    def output_side(self, side: int) -> int:
        """Return the side of the feature map of an image with this side."""
        for _ in range(self.stage_count):
            side = (side + 1) // 2  # each stage halves the side and rounds up
        return side

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.norm(self.stages(self.stem(images))))


class Patches(nn.Module):
    """Cuts an image into G square patches and maps each to a vector: (B, 3, N, N) -> (B, G, D)

    Patches are in reading order, from left to right and top to bottom. A learned position vector is
    added to the vector of each patch.

    size:  N, side of the image in pixels
    patch: side of a patch in pixels
    width: D, width of the vectors
    """

    def __init__(self, size: int, patch: int, width: int) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, width, patch, patch)
        self.positions = nn.Parameter(torch.randn((size // patch) ** 2, width) * 0.02)

    def forward(self, images: Tensor) -> Tensor:
        return self.projection(images).flatten(2).transpose(1, 2) + self.positions
