"""A fourth set of public models that nobody had opened here before: of vision, video and medical images.

    pip install --no-deps --target LIB vit-pytorch einops uformer-pytorch timesformer-pytorch res-mlp-pytorch stam-pytorch monai
    PYTHONPATH=LIB python -m benchmarks.outside_models --fourth [NAME ...] [--out FOLDER]

Small configurations, random weights; what is done with them is `outside_models.py`'s.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.models.third import Maker, normal, of

IMAGES, VOLUMES = normal(1, 3, 64, 64), normal(1, 1, 32, 32, 32)

MODELS: Mapping[str, Maker] = {
    "cait": of("vit_pytorch.cait", "CaiT", IMAGES, image_size=64, patch_size=16, num_classes=10, dim=32, depth=2, cls_depth=1, heads=2, mlp_dim=64),
    "cvt": of("vit_pytorch.cvt", "CvT", IMAGES, num_classes=10, s1_emb_dim=16, s2_emb_dim=32, s3_emb_dim=48, s3_depth=2),
    "max_vit": of("vit_pytorch.max_vit", "MaxViT", normal(1, 3, 56, 56), num_classes=10, dim_conv_stem=16, dim=16, dim_head=8, depth=(1, 1),
                  window_size=7),
    "nest": of("vit_pytorch.nest", "NesT", IMAGES, image_size=64, patch_size=4, dim=24, heads=2, num_hierarchies=3, block_repeats=(1, 1,
                    1), num_classes=10),
    "cross_vit": of("vit_pytorch.cross_vit", "CrossViT", IMAGES, image_size=64, num_classes=10, sm_dim=24, lg_dim=32, depth=1, sm_patch_size=8,
                    lg_patch_size=16, sm_enc_heads=2, sm_enc_dim_head=12, lg_enc_heads=2, lg_enc_dim_head=16, cross_attn_dim_head=16),
    "le_vit": of("vit_pytorch.levit", "LeViT", normal(1, 3, 224, 224), image_size=224, num_classes=10, stages=3, dim=(32, 48, 64), depth=1,
                 heads=(2, 3, 4), mlp_mult=2),
    "pit": of("vit_pytorch.pit", "PiT", IMAGES, image_size=64, patch_size=8, dim=32, num_classes=10, depth=(1, 1), heads=2, mlp_dim=64),
    "xcit": of("vit_pytorch.xcit", "XCiT", IMAGES, image_size=64, patch_size=8, num_classes=10, dim=32, depth=2, cls_depth=1, heads=2, mlp_dim=64),
    "region_vit": of("vit_pytorch.regionvit", "RegionViT", normal(1, 3, 224, 224), dim=(16, 24, 32, 48), depth=(1, 1, 1, 1), window_size=7,
                    num_classes=10),
    "mobile_vit": of("vit_pytorch.mobile_vit", "MobileViT", IMAGES, image_size=(64, 64), dims=[64, 80, 96], num_classes=10,
                     channels=[16, 16, 24, 24, 48, 48, 64, 64, 80, 80, 320]),
    "uformer": of("uformer_pytorch", "Uformer", IMAGES, dim=16, stages=2, num_blocks=1, window_size=8, dim_head=8, heads=2),
    "times_former": of("timesformer_pytorch", "TimeSformer", normal(1, 2, 3, 32, 32), dim=32, image_size=32, patch_size=8, num_frames=2,
                    num_classes=10,
                       depth=2, heads=2, dim_head=16),
    "res_mlp": of("res_mlp_pytorch", "ResMLP", IMAGES, image_size=64, patch_size=16, dim=32, depth=2, num_classes=10),
    "stam": of("stam_pytorch", "STAM", normal(1, 2, 3, 32, 32), dim=32, image_size=32, patch_size=8, num_frames=2, space_depth=2, space_heads=2,
               space_mlp_dim=64, time_depth=1, time_heads=2, time_mlp_dim=64, num_classes=10),
    "monai_unet": of("monai.networks.nets", "UNet", VOLUMES, spatial_dims=3, in_channels=1, out_channels=2, channels=(8, 16, 32),
                    strides=(2, 2), num_res_units=1),
    "seg_res_net": of("monai.networks.nets", "SegResNet", VOLUMES, spatial_dims=3, init_filters=8, in_channels=1, out_channels=2),
    "dyn_unet": of("monai.networks.nets", "DynUNet", VOLUMES, 3, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[8, 16, 32]),
    "attention_unet": of("monai.networks.nets", "AttentionUnet", VOLUMES, 3, 1, 2, (8, 16, 32), (2, 2)),
    "v_net": of("monai.networks.nets", "VNet", VOLUMES, spatial_dims=3, in_channels=1, out_channels=2),
    "swin_unetr": of("monai.networks.nets", "SwinUNETR", normal(1, 1, 64, 64), in_channels=1, out_channels=2, feature_size=12, spatial_dims=2,
                     depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 4)),
}  # fmt: skip
