"""A synthetic shop: offers, prices, clicks."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.simulate.shop.settings import ShopSettings as ShopSettings
    from recrawl.simulate.shop.settings import Spread as Spread
    from recrawl.simulate.shop.settings import shop_names as shop_names
    from recrawl.simulate.shop.settings import shop_settings as shop_settings
    from recrawl.simulate.shop.shop import Shop as Shop

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "settings": ["ShopSettings", "Spread", "shop_names", "shop_settings"],
        "shop": ["Shop"],
    },
)
