"""Coroutines, asynchronous iteration, context managers, comprehensions, generators."""
import asyncio, sys
class AM:
    def __init__(self, n, swallow=False): self.n = n; self.swallow = swallow
    async def __aenter__(self): await asyncio.sleep(0); print("enter", self.n); return self
    async def __aexit__(self, t, v, tb): print("exit", self.n, t and t.__name__); return self.swallow
class AI:
    def __init__(self, n): self.n = n
    def __aiter__(self): return self
    async def __anext__(self):
        if self.n == 0: raise StopAsyncIteration
        self.n -= 1
        await asyncio.sleep(0)
        return self.n
async def agen(n):
    try:
        for i in range(n): await asyncio.sleep(0); yield i
    finally: print("agen finally")
async def add(a, b): await asyncio.sleep(0); return a + b
class Aw:
    def __await__(self): yield from asyncio.sleep(0).__await__(); return "awaited"
async def main():
    print(await add(1, 2), await Aw())
    async with AM(1) as a, AM(2): print("body", a.n)
    async with AM(3, True): raise ValueError("swallowed")
    try:
        async with AM(4): raise ValueError("seen")
    except ValueError as e: print(e)
    async for x in AI(3): print(x, end=" ")
    else: print("else")
    print([x async for x in agen(3)], {x async for x in AI(2)}, {x: await add(x, 1) async for x in AI(2)}, [await add(i, i) for i in range(3)])
    async for x in agen(5):
        if x == 1: break
    g = agen(3); print(await g.__anext__(), await g.asend(None)); await g.aclose()
    print(sum([x async for x in (y * 2 async for y in agen(4))]))
    for bad in (1, object()):
        try: await bad
        except TypeError as e: print(e)
        try:
            async for _ in bad: pass
        except TypeError as e: print(e)
        try:
            async with bad: pass
        except (TypeError, AttributeError) as e: print(e)
    print(await asyncio.gather(*(add(i, 1) for i in range(5))))
    try: await asyncio.wait_for(asyncio.sleep(10), 0.01)
    except asyncio.TimeoutError: print("timeout")
    c = add(1, 1); await c
    try: await c
    except RuntimeError as e: print(e)
    async def thrower(): raise KeyError("thrown")
    try: await thrower()
    except KeyError as e: print("caught", e)
asyncio.run(main())
def drive(c):
    try:
        while True: c.send(None)
    except StopIteration as e: return e.value
async def plain(): return "plain"
print(drive(plain()))
co = plain(); print(co.cr_frame is not None, co.cr_await, co.cr_running); co.close()
import types
@types.coroutine
def old(): r = yield "y"; return r
async def useold(): return await old()
u = useold(); print(u.send(None))
try: u.send("back")
except StopIteration as e: print(e.value)
def notco():
    yield from plain_co
plain_co = plain()
try: next(notco())
except TypeError as e: print(e)
plain_co.close()
