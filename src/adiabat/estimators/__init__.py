"""The estimators of Adiabat."""
