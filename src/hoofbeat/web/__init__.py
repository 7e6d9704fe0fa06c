"""The pages: browse what was made, ask, review, sit exams. Server-rendered, with little script of our own.

Research software, not for clinical use; every page says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names
from hoofbeat.store.folder_library import Folder, FolderLibrary

if TYPE_CHECKING:
    from hoofbeat.web.app import create_app
    from hoofbeat.web.site import Site, SiteSettings

__all__ = ["Folder", "FolderLibrary", "Site", "SiteSettings", "create_app"]

__getattr__ = lazy_names(__name__, {"app": "create_app", "site": "Site SiteSettings"})
