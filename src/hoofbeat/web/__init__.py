"""The pages: browse what was made, ask, review, sit exams. Server-rendered, with little script of our own.

Research software, not for clinical use; every page says so.
"""

from hoofbeat.store.folder_library import Folder, FolderLibrary
from hoofbeat.web.app import create_app
from hoofbeat.web.site import Site, SiteSettings

__all__ = ["Folder", "FolderLibrary", "Site", "SiteSettings", "create_app"]
