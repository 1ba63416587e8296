"""The profiles of hypothesis (see `profiles`)."""

import profiles

profiles.register()
