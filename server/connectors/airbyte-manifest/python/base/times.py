"""Libraries for times, as far as components use them: pendulum 2, dateutil, isodate, pytz and the helpers of Airbyte's CDK."""

import datetime, email.utils, re

UTC = datetime.timezone.utc


def _parsed(text):
    """ISO 8601, or the form of mails. Other forms are refused rather than guessed."""
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    try:
        return email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError):
        raise ParserError(f"Unable to parse string [{text}]") from None


class ParserError(ValueError):
    pass


# --- pendulum


class Date(datetime.date):
    def format(self, pattern):
        return _formatted(self, pattern)

    def add(self, years=0, months=0, weeks=0, days=0):
        return _date(_shifted(self, years * 12 + months) + datetime.timedelta(weeks=weeks, days=days))

    def subtract(self, years=0, months=0, weeks=0, days=0):
        return self.add(-years, -months, -weeks, -days)

    def to_date_string(self):
        return self.isoformat()


def _date(value):
    return Date(value.year, value.month, value.day)


class DateTime(datetime.datetime):
    def add(self, years=0, months=0, weeks=0, days=0, hours=0, minutes=0, seconds=0, microseconds=0):
        more = datetime.timedelta(
            weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds, microseconds=microseconds
        )
        return _moment(_shifted(self, years * 12 + months) + more)

    def subtract(self, **parts):
        return self.add(**{name: -value for name, value in parts.items()})

    def format(self, pattern):
        return _formatted(self, pattern)

    def date(self):
        return _date(self)

    def to_date_string(self):
        return self.date().isoformat()

    def to_datetime_string(self):
        return self.strftime("%Y-%m-%d %H:%M:%S")

    def to_iso8601_string(self):
        return self.isoformat().replace("+00:00", "Z") if self.utcoffset() == datetime.timedelta(0) else self.isoformat()

    def to_rfc3339_string(self):
        return self.isoformat()

    to_atom_string = to_rfc3339_string

    def start_of(self, unit):
        clear = {"minute": ("second",), "hour": ("second", "minute"), "day": ("second", "minute", "hour")}
        names = clear.get(unit) or (*clear["day"], "day") if unit in (*clear, "month") else None
        if names is None:
            raise NotImplementedError(f"pendulum: start_of({unit!r}) is not supported")
        return _moment(self.replace(microsecond=0, **{name: 1 if name == "day" else 0 for name in names}))

    int_timestamp = property(lambda self: int(self.timestamp()))
    __str__ = datetime.datetime.isoformat


def _moment(value):
    return DateTime(
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, value.tzinfo
    )


def _shifted(value, months):
    if months == 0:
        return value
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    following = datetime.date(year + (month == 11), (month + 1) % 12 + 1, 1)
    last = (following - datetime.timedelta(days=1)).day
    return value.replace(year=year, month=month + 1, day=min(value.day, last))


def _zone(tz):
    if tz in (None, "UTC", UTC):
        return UTC
    if isinstance(tz, datetime.tzinfo):
        return tz
    raise NotImplementedError(f"The time zone {tz!r} is not available to components")


def pendulum_parse(text, tz=UTC, **_):
    found = _parsed(text)
    return _moment(found if found.tzinfo else found.replace(tzinfo=_zone(tz)))


def pendulum_now(tz=None):
    return _moment(datetime.datetime.now(_zone(tz)))


def pendulum_today(tz=None):
    return pendulum_now(tz).start_of("day")


def pendulum_datetime(year, month, day, hour=0, minute=0, second=0, microsecond=0, tz=UTC):
    return DateTime(year, month, day, hour, minute, second, microsecond, _zone(tz))


def pendulum_from_timestamp(timestamp, tz=UTC):
    return _moment(datetime.datetime.fromtimestamp(timestamp, _zone(tz)))


# Each token with its directive of strftime.
_TOKENS = {
    "YYYY": "%Y", "YY": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%m", "DDDD": "%j", "DD": "%d", "D": "%d",
    "dddd": "%A", "ddd": "%a", "HH": "%H", "H": "%H", "hh": "%I", "h": "%I", "mm": "%M", "m": "%M", "ss": "%S",
    "s": "%S", "SSSSSS": "%f", "A": "%p", "ZZ": "%z", "Z": "%z",
}
_TOKEN = re.compile(r"\[([^\]]*)\]|([A-Za-z])\2*")
_UNPADDED = {"M", "D", "H", "h", "m", "s"}


def _directive(token):
    if token not in _TOKENS:
        raise NotImplementedError(f"pendulum: the token {token} is not supported")
    return _TOKENS[token]


def _formatted(value, pattern):
    def text(match):
        token = match.group(0)
        if match.group(1) is not None:
            return match.group(1)
        found = value.strftime(_directive(token))
        if token == "Z":
            return f"{found[:3]}:{found[3:]}"
        return (found.lstrip("0") or "0") if token in _UNPADDED else found

    return _TOKEN.sub(text, pattern)


def pendulum_from_format(text, pattern, tz=UTC):
    literal = lambda match: match.group(1) if match.group(1) is not None else _directive(match.group(0))
    found = datetime.datetime.strptime(text, _TOKEN.sub(literal, pattern))
    return _moment(found if found.tzinfo else found.replace(tzinfo=_zone(tz)))


PENDULUM = {
    "parse": pendulum_parse, "now": pendulum_now, "today": pendulum_today, "datetime": pendulum_datetime,
    "from_format": pendulum_from_format, "from_timestamp": pendulum_from_timestamp, "DateTime": DateTime, "Date": Date,
    "UTC": UTC, "duration": datetime.timedelta, "Duration": datetime.timedelta,
}


# --- isodate

_DURATION = re.compile(
    r"([+-])?P(?:(\d+(?:\.\d+)?)Y)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)


class Duration:
    """Of isodate: a duration with months or years, which the sandbox does not have."""


def parse_duration(text):
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:]):
        raise ValueError(f"Unable to parse duration string {text!r}")
    sign, years, months, weeks, days, hours, minutes, seconds = found.groups()
    if years or months:
        raise NotImplementedError("isodate: durations of months and years are not supported")
    number = lambda one: float(one or 0)
    whole = datetime.timedelta(
        weeks=number(weeks), days=number(days), hours=number(hours), minutes=number(minutes), seconds=number(seconds)
    )
    return -whole if sign == "-" else whole


# --- dateutil


def dateutil_parse(text, **more):
    if more:
        raise NotImplementedError(f"dateutil: parse({', '.join(more)}) is not supported")
    return _parsed(text)


# --- airbyte_cdk


class AirbyteDateTime(datetime.datetime):
    def __new__(cls, *args, **kwargs):
        known = super().__new__(cls, *args, **kwargs)
        return known if known.tzinfo else known.replace(tzinfo=UTC)

    @classmethod
    def from_datetime(cls, value):
        return cls(
            value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond,
            value.tzinfo or UTC,
        )

    def to_datetime(self):
        return datetime.datetime(
            self.year, self.month, self.day, self.hour, self.minute, self.second, self.microsecond, self.tzinfo
        )

    def __str__(self):
        precision = "seconds" if self.microsecond == 0 else "microseconds"
        return self.isoformat(sep="T", timespec=precision)

    def to_epoch_millis(self):
        return int(self.timestamp() * 1000)


def ab_datetime_now():
    return AirbyteDateTime.from_datetime(datetime.datetime.now(UTC))


def ab_datetime_parse(value):
    if isinstance(value, int) or re.fullmatch(r"-?\d+", value):
        if not 0 <= int(value) < 10_000_000_000:
            raise ValueError(f"Could not parse datetime string: {value}")
        return AirbyteDateTime.from_datetime(datetime.datetime.fromtimestamp(int(value), UTC))
    try:
        return AirbyteDateTime.from_datetime(_parsed(value))
    except ValueError:
        raise ValueError(f"Could not parse datetime string: {value}") from None


def ab_datetime_format(value, format=None):
    if isinstance(value, str):
        value = ab_datetime_parse(value)
    whole = AirbyteDateTime.from_datetime(value)
    return whole.strftime(format) if format else str(whole)


class DatetimeParser:
    """Of the CDK: texts by a format of strptime, which may be one for seconds or milliseconds."""

    _UNIX_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)

    def parse(self, date, format):
        if format in ("%s", "%s_as_float"):
            return datetime.datetime.fromtimestamp(float(date), tz=UTC)
        if format in ("%ms", "%epoch_microseconds"):
            return self._UNIX_EPOCH + datetime.timedelta(**{"milliseconds" if format == "%ms" else "microseconds": int(date)})
        found = datetime.datetime.strptime(str(date), format.replace("%_ms", "%f"))
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def format(self, dt, format):
        if format == "%s":
            return str(int(dt.timestamp()))
        if format == "%s_as_float":
            return str(float(dt.timestamp()))
        if format == "%epoch_microseconds":
            return str(int(dt.timestamp() * 1_000_000))
        if format == "%ms":
            return str(int(dt.timestamp() * 1000))
        if "%_ms" in format:
            return dt.strftime(format.replace("%_ms", f"{dt.microsecond // 1000:03d}"))
        return dt.strftime(format)
