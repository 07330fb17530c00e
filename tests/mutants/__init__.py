"""`make mutants`: are the tests there that would notice a wrong token in the code that keeps our promises?"""
