"""Airbyte's CDK: parent streams, which the service reads, and partition routers."""

import abc
from dataclasses import InitVar, dataclass
from typing import Any, List, Mapping, Union

from base.host import ask
from base.interpolation import Config, InterpolatedString, StreamSlice
from base.paths import dpath_get


class Stream:
    """A parent stream, which the service reads."""

    def __init__(self, path, name):
        self._path, self.name = path, name

    def read_records(self, sync_mode=None, cursor_field=None, stream_slice=None, stream_state=None):
        key = None if stream_slice is None else getattr(stream_slice, "_key", None)
        if stream_slice is not None and key is None:
            raise NotImplementedError("read_records takes slices of its own stream_slices alone")
        yield from ask("read", self._path, key)

    read_only_records = lambda self, state=None: self.read_records()

    def stream_slices(self, *, sync_mode=None, cursor_field=None, stream_state=None):
        for known in ask("slices", self._path):
            one = StreamSlice(partition=known["partition"], cursor_slice=known["cursor_slice"])
            one._key = known["key"]
            yield one

    def __getattr__(self, name):
        raise NotImplementedError(f"{name} of a parent stream is not supported")


@dataclass
class ParentStreamConfig:
    stream: Stream
    parent_key: Union[InterpolatedString, str]
    partition_field: Union[InterpolatedString, str]
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    extra_fields: Any = None
    request_option: Any = None
    incremental_dependency: bool = False

    def __post_init__(self, parameters):
        self.parent_key = InterpolatedString.create(self.parent_key, parameters=parameters)
        self.partition_field = InterpolatedString.create(self.partition_field, parameters=parameters)


class StreamSlicer(abc.ABC):
    @abc.abstractmethod
    def stream_slices(self):
        pass


PartitionRouter = StreamSlicer


@dataclass
class SubstreamPartitionRouter(StreamSlicer):
    parent_stream_configs: List[ParentStreamConfig]
    config: Config
    parameters: InitVar[Mapping[str, Any]]

    def __post_init__(self, parameters):
        self._parameters = parameters

    def stream_slices(self):
        for one in self.parent_stream_configs:
            if one.extra_fields:
                raise NotImplementedError("extra_fields of a custom partition router")
            key, target = one.parent_key.eval(self.config), one.partition_field.eval(self.config)
            for parent_slice in one.stream.stream_slices():
                for record in one.stream.read_records(stream_slice=parent_slice):
                    try:
                        value = dpath_get(record, key)
                    except KeyError:
                        continue
                    partition = {target: value, "parent_slice": dict(parent_slice.partition)}
                    yield StreamSlice(partition=partition, cursor_slice={})
