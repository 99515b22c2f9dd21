"""The library dpath, as far as components use it."""

import collections.abc


def _parts(path, separator="/"):
    if isinstance(path, str):
        return [part for part in path.lstrip(separator).split(separator)]
    return list(path)


def _step(value, part):
    if isinstance(value, collections.abc.Mapping):
        if part in value:
            return value[part]
        if isinstance(part, str) and part.lstrip("-").isdigit() and int(part) in value:
            return value[int(part)]
        raise KeyError(part)
    if isinstance(value, (list, tuple)):
        return value[int(part)]
    raise KeyError(part)


MISSING = object()


def _checked(parts):
    for part in parts:
        if isinstance(part, str) and any(sign in part for sign in "*?[") and part != "*":
            raise NotImplementedError(f"dpath pattern {part!r} is not supported")
    return parts


def dpath_get(obj, glob, separator="/", default=MISSING):
    found = dpath_values(obj, glob, separator)
    if len(found) > 1:
        raise ValueError(f"dpath.get() globs must match only one leaf : {glob}")
    if found:
        return found[0]
    if default is MISSING:
        raise KeyError(glob)
    return default


def dpath_values(obj, glob, separator="/"):
    found = [obj]
    for part in _checked(_parts(glob, separator)):
        below = []
        for value in found:
            if part == "*":
                if isinstance(value, collections.abc.Mapping):
                    below.extend(value.values())
                elif isinstance(value, (list, tuple)):
                    below.extend(value)
            else:
                try:
                    below.append(_step(value, part))
                except (KeyError, IndexError, ValueError):
                    pass
        found = below
    return found


def dpath_new(obj, path, value, separator="/"):
    parts = _parts(path, separator)
    for part, following in zip(parts, parts[1:]):
        try:
            obj = _step(obj, part)
        except (KeyError, IndexError):
            below = [] if isinstance(following, int) else {}
            _put(obj, part, below)
            obj = below
    _put(obj, parts[-1], value)


def _put(obj, part, value):
    if isinstance(obj, list):
        obj.extend([None] * (int(part) + 1 - len(obj)))
        obj[int(part)] = value
    else:
        obj[part] = value


def dpath_set(obj, glob, value, separator="/"):
    """Sets what is there already, and counts it."""
    *parts, last = _checked(_parts(glob, separator))
    count = 0
    for place in dpath_values(obj, parts, separator):
        names = _names(place) if last == "*" else [last]
        for name in names:
            try:
                _step(place, name)
            except (KeyError, IndexError, ValueError):
                continue
            _put(place, name, value)
            count += 1
    return count


def _names(value):
    if isinstance(value, collections.abc.Mapping):
        return list(value)
    return list(range(len(value))) if isinstance(value, list) else []


def _walk(value, path):
    for name in _names(value):
        below = (*path, str(name))
        yield below, value[name]
        yield from _walk(value[name], below)


def dpath_search(obj, glob, yielded=False, separator="/", afilter=None):
    """All values that pass the filter, with their paths."""
    if glob != "**" or not yielded:
        raise NotImplementedError("dpath.search is supported for ** with yielded=True")
    for path, value in _walk(obj, ()):
        if afilter is None or afilter(value):
            yield separator.join(path), value
