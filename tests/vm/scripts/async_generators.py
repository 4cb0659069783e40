"""Asynchronous generators: asend, athrow, aclose, finalizers, yield inside async with and try."""
import asyncio, sys
async def ag():
    try:
        x = yield 1
        print("got", x)
        try: y = yield 2
        except ValueError as e: print("caught", e); yield "after"
        yield 3
    finally: print("fin")
async def main():
    g = ag(); print(await g.asend(None), await g.asend("a"), await g.athrow(ValueError("v")), await g.__anext__())
    try: await g.__anext__()
    except StopAsyncIteration: print("stop")
    h = ag(); await h.__anext__(); await h.aclose()
    k = ag()
    try: await k.asend(5)
    except TypeError as e: print(e)
    async def raises():
        yield 1
        raise StopAsyncIteration
    try: print([x async for x in raises()])
    except RuntimeError as e: print(e)
    async def inner():
        for i in range(3): yield i
    async def outer():
        async for v in inner(): yield v * 10
    print([v async for v in outer()], [v async for v in outer() if v])
    async def gen_of_gens(): return [x + y async for x in inner() for y in [v async for v in inner()]]
    print(await gen_of_gens())
    it = inner(); one = it.__anext__()
    print(await one)
    try: await one
    except RuntimeError as e: print(e)
    async for v in inner():
        if v == 1: break
    async def forever():
        try:
            while True: yield await asyncio.sleep(0, "tick")
        finally: print("closed by loop")
    async for t in forever(): print(t); break
    q = asyncio.Queue()
    async def prod():
        for i in range(4): await q.put(i)
        await q.put(None)
    async def cons():
        out = []
        while (v := await q.get()) is not None: out.append(v)
        return out
    print((await asyncio.gather(prod(), cons()))[1])
    async with asyncio.timeout(1) if hasattr(asyncio, "timeout") else asyncio.Lock(): print("in timeout")
    async with asyncio.TaskGroup() as tg: ts = [tg.create_task(asyncio.sleep(0, i)) for i in range(3)]
    print([t.result() for t in ts])
    try:
        async with asyncio.TaskGroup() as tg:
            async def bad(): raise KeyError("tg")
            tg.create_task(bad())
    except* KeyError as e: print(e.exceptions)
asyncio.run(main())
