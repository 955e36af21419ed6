# torch: 2.13.0
import torch
def make(log):
    class Rule:
        def hit(self):
            log.append(1)
    return Rule
log = []
Rule = make(log)
f = torch.compile(lambda x: (Rule().hit(), x + 1), backend="eager")
f(torch.ones(2))
assert log == [1], log
