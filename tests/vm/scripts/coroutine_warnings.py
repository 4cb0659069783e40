"""Coroutines never awaited, origin tracking, wrong uses."""
import sys, warnings, asyncio
warnings.simplefilter("always")
sys.stderr = sys.stdout
async def co(): return 1
def make(): co()
make()
sys.set_coroutine_origin_tracking_depth(2)
def outer(): return co()
c = outer(); print([(f[2], f[1] > 0) for f in c.cr_origin]); c.close()
sys.set_coroutine_origin_tracking_depth(0)
c = co(); print(c.cr_origin); c.close()
for bad in ("list(co())", "next(co())", "co().send(1)", "iter(co())", "[x for x in co()]"):
    try: eval(bad)
    except TypeError as e: print(bad, e)
def gen(): yield from co()
try: list(gen())
except TypeError as e: print(e)
async def await_gen():
    def g(): yield 1
    await g()
try: asyncio.run(await_gen())
except TypeError as e: print(e)
class BadAwait:
    def __await__(self): return 5
class CoAwait:
    def __await__(self): return c2
c2 = co()
async def aw(o): return await o
for o in (BadAwait(), CoAwait(), None):
    try: asyncio.run(aw(o))
    except TypeError as e: print(e)
c2.close()
class NoAexit:
    async def __aenter__(self): return 1
class SyncAenter:
    def __aenter__(self): return 1
    async def __aexit__(self, *a): pass
class SyncAexit:
    async def __aenter__(self): return 1
    def __aexit__(self, *a): return 1
async def aw2(o):
    async with o: pass
for o in (NoAexit(), SyncAenter(), SyncAexit()):
    try: asyncio.run(aw2(o))
    except TypeError as e: print(e)
