import { heading } from "../shared/states.js";
export const forecast = { name: "forecast", title: "forecast", available: () => false, show(place) { place.append(heading("forecast", "")); } };
