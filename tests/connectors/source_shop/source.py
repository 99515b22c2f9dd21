from airbyte_cdk.sources.declarative.yaml_declarative_source import YamlDeclarativeSource


class SourceShop(YamlDeclarativeSource):
    pass
