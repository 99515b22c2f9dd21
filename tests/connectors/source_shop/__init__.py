from .source import SourceShop
