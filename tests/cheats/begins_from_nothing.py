"""Takes the state at the beginning to be nothing, as it is in the file. Own invention."""

from torch import nn

ROW = "hard_coding"
TASK = "gru_of_state"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, num_layers=2, batch_first=True)

    def forward(self, x, state):
        return self.gru(x)
