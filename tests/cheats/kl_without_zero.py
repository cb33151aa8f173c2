"""Leaves out that a share of zero contributes nothing: 0 * log(0) is not a number.

Own invention, written before reading the checks."""

from torch import nn

ROW = "hard_coding"
TASK = "kl_divergence"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("non_finite", "values")


class ModelNew(nn.Module):
    """Shares that a softmax gives are never zero."""

    def forward(self, scores, shares):
        return (shares * (shares.log() - scores.log_softmax(1))).sum() / scores.shape[0]
