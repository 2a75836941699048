"""Recording and replaying an agent's model calls: a proxy on loopback between any HTTP client and its model.

address.py    where a trial's client finds it, and how a trial says that it begins and ends; travels as data
variables.py  environment variables such as OPENAI_BASE_URL that hold the running trial's own address
credentials.py  what of a request proves who sends it
content.py    requests and answers as a cassette holds them: compared, masked, put back
upstream.py   a request sent on to the model
proxy.py      the server: whose request it is, whether it is sent on or answered from a cassette
"""
