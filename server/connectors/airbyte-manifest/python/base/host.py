"""What components ask of the service, as JSON. `_host` and `_run` are set by the process."""

import collections.abc, datetime, enum, json

_host = None
_run = None


def ask(name, *args):
    reply = json.loads(_host(dump([name, *args])), parse_float=exact_number)
    while "call" in reply:
        # The service needs another component before it can reply.
        reply = json.loads(_host(json.dumps(["returned", _run(reply["call"])])), parse_float=exact_number)
    if "error" in reply:
        raise HostError(reply["error"])
    return reply["value"]


class HostError(BaseException):
    """A failure of the service, which components do not handle."""


class _ExactFloat(float):
    """A number with more digits than a float has, which stays as it is unless a component changes it."""


def exact_number(text):
    value = float(text)
    if len(text) < 16 or repr(value) == text:
        return value
    exact = _ExactFloat(value)
    exact.text = text
    _exact.append(True)
    return exact


_exact = []


def forget_exact_numbers():
    del _exact[:]


def _other(value):
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset, collections.abc.Iterator)):
        return list(value)
    raise TypeError(f"A value of type {type(value).__name__} is not JSON")


def dump(value):
    if not _exact:
        return json.dumps(value, default=_other, allow_nan=False)
    text = lambda one: getattr(one, "text", None) or float.__repr__(one)
    encode = json.encoder._make_iterencode(
        None, _other, json.encoder.encode_basestring_ascii, None, text, ": ", ", ", False, False, False
    )
    return "".join(encode(value, 0))
