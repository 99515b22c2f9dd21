import logging

logger = logging.getLogger("airbyte")
BUSY = "busy"
