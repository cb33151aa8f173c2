"""Takes every row to have as many elements as the file's own. Own invention."""

from torch import nn

ROW = "hard_coding"
TASK = "csr_product"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "raised")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, begins, columns, values, x):
        rows = begins.shape[0] - 1
        return (values[:, None] * x[columns]).view(rows, -1, x.shape[1]).sum(1)
