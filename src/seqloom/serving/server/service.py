"""The state that all request handlers share."""

from dataclasses import dataclass, field

from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.api_keys import ApiKeys
from seqloom.serving.server.catalogue import Catalogue
from seqloom.serving.server.limits import Limits


@dataclass(frozen=True)
class Service:
    """The loaded runs, the request limits, admission control and the API keys."""

    catalogue: Catalogue
    limits: Limits
    admission: AdmissionControl
    keys: ApiKeys = field(default_factory=ApiKeys)
