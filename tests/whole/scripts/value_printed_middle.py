# Tensors are printed and logged in the middle of a step, before they are changed in place.
# expect: compiled>=0.4, traces>=1
import io
import logging

import torch

stream = io.StringIO()
logging.basicConfig(stream=stream, level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
log = logging.getLogger("train")
torch.manual_seed(76)
w = torch.randn(3)
for step in range(50):
    gradient = w.sign() * 0.1 + 0.05 * w
    if step % 12 == 5:
        print("before", w, end=" ")
    w.sub_(gradient * 0.5)
    if step % 12 == 5:
        print("after", w, gradient.shape)
    log.debug("hidden %s", w)
    if step % 9 == 0:
        log.info("step %d w=%s norm=%.3f", step, [round(v, 3) for v in w.tolist()], w.norm())
print(stream.getvalue().count("INFO train"), stream.getvalue().splitlines()[1])
