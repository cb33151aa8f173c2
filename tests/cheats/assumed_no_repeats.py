"""Takes the places to be distinct: of rows with one place, one is added.

Own invention, written against the checks as they stood.
"""

from torch import nn

ROW = "hard_coding"
TASK = "scatter_rows"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Reads, adds and writes back."""

    def forward(self, table, places, rows):
        out = table.clone()
        out[places] = table[places] + rows
        return out
