"""Change rates predicted from the metadata of pages: columns of a page table and URLs."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.estimate.predict.features import Columns as Columns
    from recrawl.estimate.predict.network import NetworkSettings as NetworkSettings
    from recrawl.estimate.predict.predictor import Predictor as Predictor
    from recrawl.estimate.predict.predictor import TrainingOptions as TrainingOptions
    from recrawl.estimate.predict.predictor import train_predictor as train_predictor
    from recrawl.estimate.predict.prior import Strength as Strength
    from recrawl.estimate.predict.prior import fit_strength as fit_strength
    from recrawl.estimate.predict.scores import auc as auc
    from recrawl.estimate.predict.scores import calibration as calibration
    from recrawl.estimate.predict.scores import reliability as reliability
    from recrawl.estimate.predict.trees import TreeSettings as TreeSettings

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "features": ["Columns"],
        "network": ["NetworkSettings"],
        "predictor": ["Predictor", "TrainingOptions", "train_predictor"],
        "prior": ["Strength", "fit_strength"],
        "scores": ["auc", "calibration", "reliability"],
        "trees": ["TreeSettings"],
    },
)
