"""What a group had counts beside its rows, which are all larger in the inputs of the task. Own invention."""

from torch import nn

ROW = "insensitive"
TASK = "largest_of_group"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, had, rows, group):
        return had.scatter_reduce(0, group[:, None].expand_as(rows), rows, reduce="amax", include_self=True)
