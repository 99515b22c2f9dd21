"""Small libraries, as far as components use them: PyJWT, backoff, PyYAML. The service signs and parses."""

import datetime, functools, time

from base.host import ask


def jwt_encode(payload, key, algorithm="HS256", headers=None, **more):
    if more:
        raise NotImplementedError(f"jwt: encode({', '.join(more)}) is not supported")
    seconds = lambda value: int(value.timestamp()) if isinstance(value, datetime.datetime) else value
    times = {name: seconds(payload[name]) for name in ("exp", "iat", "nbf") if name in payload}
    secret = key.decode() if isinstance(key, bytes) else key
    return ask("jwt", {"algorithm": algorithm, "key": secret, "headers": headers or {}, "payload": {**payload, **times}})


def yaml_load(text):
    return ask("yaml", text.decode() if isinstance(text, bytes) else text)


def _waits(kind, options):
    tries = 0
    while True:
        if kind is constant:
            wait = options.get("interval", 1)
        else:
            wait = options.get("factor", 1) * options.get("base", 2) ** tries
            wait = min(wait, options.get("max_value") or wait)
        yield wait
        tries += 1


def expo():
    pass


def constant():
    pass


def _call(function, details):
    for one in function if isinstance(function, (list, tuple)) else [function] if function else []:
        one(details)


def on_exception(
    wait_gen, exception, *, max_tries=None, max_time=None, jitter=None, giveup=lambda error: False,
    on_backoff=None, on_giveup=None, on_success=None, logger=None, raise_on_giveup=True, **options,
):
    if wait_gen not in (expo, constant):
        raise NotImplementedError("backoff: only expo and constant are supported")

    def decorate(function):
        @functools.wraps(function)
        def retried(*args, **kwargs):
            start, tries, waits = time.monotonic(), 0, _waits(wait_gen, options)
            while True:
                tries += 1
                details = {"target": function, "args": args, "kwargs": kwargs, "tries": tries}
                try:
                    result = function(*args, **kwargs)
                except exception as error:
                    elapsed = time.monotonic() - start
                    details |= {"elapsed": elapsed, "exception": error}
                    is_over = giveup(error) or tries == max_tries or (max_time is not None and elapsed >= max_time)
                    if is_over:
                        _call(on_giveup, details)
                        if raise_on_giveup:
                            raise
                        return None
                    wait = next(waits)
                    if max_time is not None:
                        wait = min(wait, max_time - elapsed)
                    _call(on_backoff, {**details, "wait": wait})
                    time.sleep(wait)
                else:
                    _call(on_success, details)
                    return result

        return retried

    return decorate
