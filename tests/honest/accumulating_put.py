"""Another function for the same: index_put_ that adds."""

from torch import nn

TASK = "scatter_rows"


class ModelNew(nn.Module):
    """Copies and accumulates."""

    def forward(self, table, places, rows):
        return table.clone().index_put_((places,), rows, accumulate=True)
