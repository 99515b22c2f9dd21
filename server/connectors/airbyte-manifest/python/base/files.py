"""The files of a connector, by their path in its package."""

_files = {}


def keep_files(files):
    _files.clear()
    _files.update(files)


def path_of(name):
    """The path of a module, without the package that contains all files."""
    first, *rest = name.split(".")
    return "/".join(rest if first.startswith("source_") else [first, *rest])


def source_file(path):
    """The path of a module's source, and whether it is a package; None: there is none."""
    for name, is_package in ((f"{path}.py", False), (f"{path}/__init__.py", True)):
        if name in _files:
            return name, is_package
    return None


def is_folder(path):
    return path == "" or any(name.startswith(f"{path}/") for name in _files)


def text_of(path):
    return _files[path]


def is_source(path):
    return path in _files


def data_file(path):
    parts = path.removeprefix("./").split("/")
    if parts[0].startswith("source_"):
        parts = parts[1:]
    name = "/".join(parts)
    if name not in _files:
        raise FileNotFoundError(f"The connector has no file {name}")
    return _files[name]


def get_data(package, resource):
    """Of pkgutil."""
    return data_file(f"{package.replace('.', '/')}/{resource}").encode()
